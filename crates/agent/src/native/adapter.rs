//! The native loop as an agent among others: a process of our own binary, supervised and fenced like any other's.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::json;
use triphammer_guard::{Place, classify};
use triphammer_llm::Api;
use triphammer_model::agent::AgentPlan;
use triphammer_model::config::ModelApi;
use triphammer_model::{Agent, AgentError, AgentName, Cancel, Continuation, Performance, Supervisor, Task};

use super::handed_on::{self, Whole};
use super::{Actions, Ask, COMMAND, NativeLimits, NativeTask};
use crate::adapter::Adapter;
use crate::guarded::place_here;
use crate::own_program::OwnProgram;

/// What a native agent is made of.
#[derive(Clone, Debug)]
pub struct NativeConfig {
    /// What it has in common with others.
    pub adapter: Adapter,
    /// The model's name.
    pub model: String,
    /// How its service is spoken to.
    pub api: ModelApi,
    /// Where the service is; else by the environment, else its founder's.
    pub base_url: Option<String>,
    /// The variable that holds the key; else the common one.
    pub key_env: Option<String>,
}

/// Our own loop.
#[derive(Clone, Debug)]
pub struct NativeAgent(NativeConfig);

/// The variables that the loop reads its key and its service's place from.
pub fn variables(api: ModelApi, key_env: Option<&str>) -> Vec<String> {
    let api = api_of(api);
    vec![key_env.unwrap_or(api.key_variable()).to_owned(), api.url_variable().to_owned()]
}

const fn api_of(api: ModelApi) -> Api {
    match api {
        ModelApi::Openai => Api::OpenAi,
        ModelApi::Anthropic => Api::Anthropic,
    }
}

impl NativeAgent {
    /// An agent by its configuration.
    pub const fn new(config: NativeConfig) -> Self {
        Self(config)
    }

    fn task(&self, task: &Task, digest: Option<String>) -> NativeTask {
        NativeTask {
            brief: task.brief.clone(),
            workspace: Some(task.workspace.clone()),
            model: self.0.model.clone(),
            api: api_of(self.0.api),
            base_url: self.0.base_url.clone(),
            key_env: self.0.key_env.clone(),
            actions: Actions::default(),
            temperature: None,
            limits: NativeLimits::default(),
            digest,
        }
    }
}

impl Agent for NativeAgent {
    fn name(&self) -> &AgentName {
        &self.0.adapter.name
    }

    fn plan(&self, _fenced: bool) -> AgentPlan {
        AgentPlan {
            kind: "native".to_owned(),
            argv: vec!["triphammer".to_owned(), COMMAND.to_owned()],
            prompt: "stdin".to_owned(),
            env: self.0.adapter.env_names.clone(),
            unknowns: vec!["its cost, where its model has no price".to_owned()],
        }
    }

    fn check(&self, _path_var: &OsStr, _workspace: &Path) -> Result<(), AgentError> {
        Ok(())
    }

    fn implement(
        &self,
        task: &Task,
        supervisor: &dyn Supervisor,
        cancel: &Cancel,
    ) -> Result<Performance, AgentError> {
        let NativeConfig { model, adapter, .. } = &self.0;
        let (continuation, digest, lost) = match handed_on::of(task) {
            Some(Ok((attempt, digest))) => (Continuation::Digest { attempt }, Some(digest), None),
            Some(Err(error)) => (Continuation::Fresh, None, Some(error)),
            None => (Continuation::Fresh, None, None),
        };
        let told = self.task(task, digest);
        let start = json!({ "kind": "native", "model": model, "continuation": continuation });
        let program = OwnProgram { adapter, command: COMMAND };
        let mut worked = program.run(task, &told, start, Box::<Whole>::default(), supervisor, cancel)?;
        let heard = &mut worked.heard;
        if let Some(error) = lost {
            heard.trouble(format!("the digest of the attempt before was not read: {error}"));
        }
        if let Some(digest) = heard.digest.take() {
            let session = handed_on::keep(task, &adapter.redactor, &digest)
                .map_err(program.file_error(format!("writing its digest in {}", task.dir.display())))?;
            heard.session(&session);
        }
        Ok(worked.performance(&adapter.name, |_| continuation))
    }
}

/// Refuses commands that cannot be undone, and those that are not read to their end.
#[derive(Clone, Debug)]
pub struct Guarded(Place);

impl Guarded {
    /// For commands that run in the current folder.
    pub fn here() -> Self {
        Self(place_here(&std::env::current_dir().unwrap_or_else(|_| "/".into())))
    }
}

impl Ask for Guarded {
    fn allow(&self, command: &str) -> Result<(), String> {
        classify(command, &self.0).refusal().map_or(Ok(()), |refusal| Err(refusal.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_undone_is_refused_with_its_reason() {
        let guard = Guarded(Place::new("/w", Some("/home/u".to_owned()), "/tmp"));
        assert_eq!(guard.allow("cargo test && rm -rf target"), Ok(()));
        let refused = guard.allow("cargo test && git push --force").unwrap_err();
        assert!(refused.starts_with("`git push --force`: "), "{refused}");
        let deep = format!("{}git push --force{}", "( ".repeat(60), " )".repeat(60));
        let refused = guard.allow(&deep).unwrap_err();
        assert!(refused.contains("nested too deeply"), "{refused}");
        assert_eq!(guard.allow("./release.sh"), Ok(()));
    }

    #[test]
    fn it_reads_the_variables_of_its_api() {
        assert_eq!(variables(ModelApi::Anthropic, None), ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]);
        assert_eq!(variables(ModelApi::Openai, Some("MINE")), ["MINE", "OPENAI_BASE_URL"]);
    }
}
