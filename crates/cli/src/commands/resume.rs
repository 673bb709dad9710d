//! `triphammer resume`: goes on with a suspended or interrupted run, with the budgets it had left.

use triphammer_model::Cancel;
use triphammer_runner::reopen;

use crate::args::ResumeArgs;
use crate::commands::run::finish;
use crate::exit::{Failure, Outcome};
use crate::home::{self, Home};
use crate::output::Terminal;
use crate::signals;

pub(crate) fn resume(args: &ResumeArgs) -> Outcome {
    let home = Home::find(args.home.home.as_deref())?;
    let runs = home.runs();
    let id = runs.resolve(&args.run).map_err(Failure::usage)?;
    let cancel = Cancel::new();
    signals::watch(&cancel).map_err(|e| Failure::code(format!("listening for signals: {e}"), 5))?;
    let terminal = Terminal::new(args.home.json);
    let mut run = reopen(runs.path(), home::state()?, &id, cancel, &terminal)
        .map_err(|e| Failure::code(&e, e.exit_code()))?;
    finish(&mut run)
}
