//! Whether a command may run.

/// Asked before each command of the model's.
pub trait Ask {
    /// Lets a command through, or says why not. The model is told the reason.
    fn allow(&self, command: &str) -> Result<(), String>;
}

/// Lets everything through.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Ask for AllowAll {
    fn allow(&self, _command: &str) -> Result<(), String> {
        Ok(())
    }
}
