//! What a shell reads out of a line: commands, their words, and where their output goes.

/// A list of commands, run one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Its commands in order.
    pub nodes: Vec<Node>,
}

/// A command of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A name with its arguments.
    Simple(Simple),
    /// Commands joined by `|`, each in a process of its own.
    Pipeline(Vec<Node>),
    /// Commands joined by `&&` and `||`.
    Linked {
        /// The one that always runs.
        first: Box<Node>,
        /// Those that run depending on how the ones before them ended.
        rest: Vec<(Link, Node)>,
    },
    /// A command followed by `&`.
    Background(Box<Node>),
    /// A command made of commands.
    Compound {
        /// Which one.
        kind: Compound,
        /// Redirections of the whole.
        redirections: Vec<Redirection>,
    },
}

/// What stands between two linked commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// A command made of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compound {
    /// `( … )`
    Subshell(Script),
    /// `{ …; }`
    Group(Script),
    /// `if`: conditions and branches in the order of the text; `else` is the last when their number is odd.
    If(Vec<Script>),
    /// `while` and `until`.
    While {
        /// What is asked before each round.
        condition: Script,
        /// What a round runs.
        body: Script,
    },
    /// `for` and `select`.
    For {
        /// The variable that a round sets.
        variable: String,
        /// What it is set to; `None` means the arguments of the script.
        values: Option<Vec<Word>>,
        /// What a round runs.
        body: Script,
    },
    /// `case`: the word asked about, and the arms.
    Case {
        /// The word asked about.
        subject: Word,
        /// Patterns and what runs when one of them fits.
        arms: Vec<(Vec<Word>, Script)>,
    },
    /// The definition of a function.
    Function {
        /// Its name.
        name: String,
        /// What a call runs.
        body: Box<Node>,
    },
    /// `[[ … ]]` and `(( … ))`: no commands of their own, but their words may hold some.
    Test(Vec<Word>),
}

/// A name with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// `NAME=value` in front of the name.
    pub assignments: Vec<Assignment>,
    /// Name and arguments.
    pub words: Vec<Word>,
    /// Where input comes from and output goes to.
    pub redirections: Vec<Redirection>,
    /// The command as it was written, cut at [`TEXT`](super::TEXT) bytes.
    pub text: String,
}

/// `NAME=value`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable, without an index.
    pub name: String,
    /// The value; an array is a word of one [`Piece::Array`].
    pub value: Word,
    /// `+=`, or an element of an array: the value is not the whole of the variable.
    pub partial: bool,
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirection {
    /// `< file`, and `<>`, which cuts nothing off.
    Read(Word),
    /// `> file`, `>| file`, `&> file`, `>& file`: whatever the file held is gone.
    Write(Word),
    /// `>> file`
    Append(Word),
    /// `2>&1`, `<&-`
    Duplicate,
    /// `<<<`
    HereString(Word),
    /// `<<`: an index into [`Parsed::heredocs`](super::Parsed::heredocs).
    Heredoc(usize),
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// What it is put together from.
    pub pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text in which globs, braces and a tilde mean something.
    Bare(String),
    /// Text that was quoted or escaped.
    Quoted(String),
    /// `$name`, and `${name}` with an operator that yields the variable's own value where it has one.
    Variable {
        /// The variable.
        name: String,
        /// Whether the value stays one word.
        quoted: bool,
        /// What an operator's word runs (`${x:-$(date)}`).
        inside: Vec<Script>,
    },
    /// `$(…)` and backticks.
    Command {
        /// What is run.
        script: Script,
        /// Whether the output stays one word.
        quoted: bool,
    },
    /// `<(…)` and `>(…)`: the word is the name of a pipe.
    Process(Script),
    /// `NAME=(…)`
    Array(Vec<Word>),
    /// What only the shell can know: arithmetic, other parameter expansions; with the commands inside it.
    Unknown(Vec<Script>),
}
