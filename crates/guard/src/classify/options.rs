//! Options apart from operands.

use super::arg::Arg;

/// A command's arguments, read.
#[derive(Debug, Default)]
pub(super) struct Options<'a> {
    /// `-x` and `--long`, one entry each, with a value where one belongs to it.
    flags: Vec<(String, Option<String>)>,
    /// What is no option.
    pub(super) operands: Vec<&'a Arg>,
}

impl<'a> Options<'a> {
    /// Reads arguments: `short` are the letters that take a value, `long` the long options that take one as the next
    /// argument. Reading goes on behind operands, as most tools do.
    pub(super) fn read(args: &'a [Arg], short: &str, long: &[&str]) -> Self {
        Self::new(args, short, long, false).0
    }

    /// The same up to the first operand, whose place is returned too.
    pub(super) fn leading(args: &'a [Arg], short: &str, long: &[&str]) -> (Self, usize) {
        Self::new(args, short, long, true)
    }

    fn new(args: &'a [Arg], short: &str, long: &[&str], leading: bool) -> (Self, usize) {
        let mut options = Self::default();
        let mut index = 0;
        while let Some(arg) = args.get(index) {
            let next = args.get(index + 1).map(|arg| arg.text.clone());
            index += 1;
            let text = arg.text.as_str();
            if text == "--" {
                if !leading {
                    options.operands.extend(&args[index..]);
                    index = args.len();
                }
                return (options, index);
            }
            if let Some(name) = text.strip_prefix("--") {
                let (name, value) = match name.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (name, None),
                };
                let name = format!("--{name}");
                let takes = value.is_none() && long.contains(&name.as_str());
                index += usize::from(takes);
                options.flags.push((name, if takes { next } else { value }));
            } else if arg.is_option() {
                for (at, letter) in text[1..].char_indices() {
                    let rest = &text[1 + at + letter.len_utf8()..];
                    if short.contains(letter) {
                        let value = if rest.is_empty() { next.clone() } else { Some(rest.to_owned()) };
                        index += usize::from(rest.is_empty());
                        options.flags.push((format!("-{letter}"), value));
                        break;
                    }
                    options.flags.push((format!("-{letter}"), None));
                }
            } else if leading {
                return (options, index - 1);
            } else {
                options.operands.push(arg);
            }
        }
        (options, index.min(args.len()))
    }

    /// Whether one of these is among the options.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Whether a long option is there, spelled out or cut off after at least `least` bytes.
    pub(super) fn has_long(&self, full: &str, least: usize) -> bool {
        self.flags
            .iter()
            .any(|(name, _)| name.len() >= least && name.starts_with("--") && full.starts_with(name.as_str()))
    }

    /// The values of these options.
    pub(super) fn values<'s>(&'s self, names: &'s [&str]) -> impl Iterator<Item = &'s str> {
        self.flags
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_deref())
    }
}

/// Whether an option of this name is among the arguments, alone or with a value that does not switch it off.
pub(super) fn has_flag(args: &[Arg], flag: &str) -> bool {
    args.iter().take_while(|arg| !arg.is("--")).any(|arg| {
        arg.text.strip_prefix(flag).is_some_and(|rest| match rest.strip_prefix('=') {
            Some(value) => !matches!(value, "false" | "none" | "no" | "0"),
            None => rest.is_empty(),
        })
    })
}

/// Whether the operands begin with these words. An operand right behind an option may be the option's value.
pub(super) fn begins(args: &[Arg], words: &[&str]) -> bool {
    let mut words = words.iter();
    let Some(mut word) = words.next() else { return true };
    let mut behind_option = false;
    for arg in args {
        // `cargo +nightly publish`
        if arg.is_option() || arg.starts_with("+") {
            behind_option = !arg.text.contains('=');
            continue;
        }
        if *word == "*" || arg.is(word) {
            match words.next() {
                Some(next) => word = next,
                None => return true,
            }
        } else if !behind_option {
            return false;
        }
        behind_option = false;
    }
    false
}
