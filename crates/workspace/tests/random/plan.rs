//! What is done in a sequence: drawn from a seed, and readable when it fails.

use std::fmt;

use crate::clock::Pause;

/// A path from the workspace. There are few of them, so that acts meet, and the same name is a file here and a
/// directory there. Hidden names other than known configuration are another zone, and left to the tests of zones.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Vec<u8>);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.escape_ascii())
    }
}

const DIRECTORIES: [&[u8]; 6] = [b"d", b"d/e", b"\xe9", b"l\nf", b"a", b"d/a"];
const NAMES: [&[u8]; 6] = [b"a", b"b", b"e", b"\xff\xfe", b"n\nl", b".config"];

impl Name {
    fn directory(random: &mut fastrand::Rng) -> Self {
        Self(DIRECTORIES[random.usize(..DIRECTORIES.len())].to_vec())
    }

    fn any(random: &mut fastrand::Rng) -> Self {
        let name = NAMES[random.usize(..NAMES.len())];
        if random.u8(..3) == 0 {
            return Self(name.to_vec());
        }
        let mut path = Self::directory(random).0;
        path.push(b'/');
        path.extend_from_slice(name);
        Self(path)
    }
}

/// What an agent may do to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Create,
    WriteSameSize,
    WriteSameBytes,
    /// Cut to nothing and written, whatever was there.
    WriteAnew,
    Append,
    Truncate,
    /// Other bytes, but the size and the modification time of before.
    TouchBack,
    Touch,
    /// To a year far away.
    TouchFar,
    /// A new file in the place of the old one.
    RenameOver,
    /// The same, with the size and the modification time of the old one.
    RenameOverAlike,
    Swap,
    HardLink,
    /// A name outside of the workspace.
    HardLinkOutside,
    /// Through such a name.
    WriteOutside,
    Chmod,
    Symlink,
    /// A new link in the place of the old one.
    Retarget,
    Delete,
    Rename,
    /// Through a mapping that ends with the act.
    StoreMapped,
    /// The same, after a read of the same page through the same mapping.
    LoadAndStoreMapped,
    MakeDirectory,
    RemoveDirectory,
    RemoveAll,
    /// A new directory with the same names in the place of the old one.
    RebuildDirectory,
    FileToDirectory,
    DirectoryToFile,
    RenameDirectory,
    SwapDirectories,
    ChmodDirectory,
    /// A `.git` as in a clone or as in a submodule.
    Nest,
    WriteInNested,
}

impl Verb {
    pub(crate) const ALL: [Self; 33] = [
        Self::Create,
        Self::WriteSameSize,
        Self::WriteSameBytes,
        Self::WriteAnew,
        Self::Append,
        Self::Truncate,
        Self::TouchBack,
        Self::Touch,
        Self::TouchFar,
        Self::RenameOver,
        Self::RenameOverAlike,
        Self::Swap,
        Self::HardLink,
        Self::HardLinkOutside,
        Self::WriteOutside,
        Self::Chmod,
        Self::Symlink,
        Self::Retarget,
        Self::Delete,
        Self::Rename,
        Self::StoreMapped,
        Self::LoadAndStoreMapped,
        Self::MakeDirectory,
        Self::RemoveDirectory,
        Self::RemoveAll,
        Self::RebuildDirectory,
        Self::FileToDirectory,
        Self::DirectoryToFile,
        Self::RenameDirectory,
        Self::SwapDirectories,
        Self::ChmodDirectory,
        Self::Nest,
        Self::WriteInNested,
    ];

    fn is_of_directories(self) -> bool {
        self >= Self::MakeDirectory && self != Self::FileToDirectory
    }
}

/// One act. What cannot be done, because its path is not there or something else is, is left out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) before: Pause,
    pub(crate) verb: Verb,
    pub(crate) at: Name,
    /// The other path, for what needs two.
    pub(crate) to: Name,
    /// For whatever else is left to chance.
    pub(crate) dice: u8,
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.before != Pause::None {
            write!(f, "pause {:?}, ", self.before)?;
        }
        write!(f, "{:?} {:?} ({:?}, {})", self.verb, self.at, self.to, self.dice)
    }
}

impl Act {
    fn random(verb: Verb, random: &mut fastrand::Rng) -> Self {
        let mut name = || if verb.is_of_directories() { Name::directory(random) } else { Name::any(random) };
        let (at, to) = (name(), name());
        Self { before: Pause::random(random), verb, at, to, dice: random.u8(..) }
    }

    /// An act that likely meets what earlier acts made.
    fn after(earlier: &[Self], random: &mut fastrand::Rng) -> Self {
        let mut act = Self::random(Verb::ALL[random.usize(..Verb::ALL.len())], random);
        let wanted = match act.verb {
            Verb::Retarget => Some(Verb::Symlink),
            Verb::WriteInNested => Some(Verb::Nest),
            verb if verb.is_of_directories() => Some(Verb::MakeDirectory),
            _ => None,
        };
        let met: Vec<&Self> =
            earlier.iter().filter(|old| wanted.is_none_or(|wanted| old.verb == wanted)).collect();
        if !met.is_empty() && random.u8(..4) > 0 {
            act.at = met[random.usize(..met.len())].at.clone();
            if random.bool() {
                act.to = met[random.usize(..met.len())].at.clone();
            }
        }
        if act.verb == Verb::WriteOutside && !earlier.iter().any(|old| old.verb == Verb::HardLinkOutside) {
            act.verb = Verb::HardLinkOutside;
        }
        act
    }
}

/// A whole sequence.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Before the first look.
    pub(crate) start: Vec<Act>,
    /// Between the looks.
    pub(crate) work: Vec<Act>,
    pub(crate) before_first_look: Pause,
    pub(crate) before_second_look: Pause,
    /// Whether there is one more look, after so many acts of the work.
    pub(crate) look_between: Option<usize>,
    /// Whether the world is read before the first look and not after it. A stat in between could have the kernel
    /// stamp more finely than it would.
    pub(crate) read_first: bool,
    /// Whether the kept tree is restored as well, which takes long.
    pub(crate) restored: bool,
}

impl Plan {
    /// The sequence of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let random = &mut random;
        let mut start = Vec::new();
        for _ in 0..random.usize(1..4) {
            start.push(Act::random(Verb::MakeDirectory, random));
        }
        for _ in 0..random.usize(2..7) {
            start.push(Act::random(Verb::Create, random));
        }
        let rare = [Verb::Symlink, Verb::HardLink, Verb::HardLinkOutside, Verb::Nest, Verb::Chmod];
        for _ in 0..random.usize(..3) {
            start.push(Act::random(rare[random.usize(..rare.len())], random));
        }
        // The looks are what is to be timed; a start that takes its time finds nothing more.
        for act in &mut start {
            act.before = Pause::None;
        }
        let mut all = start.clone();
        for _ in 0..random.usize(..9) {
            all.push(Act::after(&all, random));
        }
        let work = all.split_off(start.len());
        Self {
            start,
            work,
            before_first_look: Pause::random(random),
            before_second_look: Pause::random(random),
            look_between: (random.u8(..4) == 0).then(|| random.usize(..8)),
            read_first: random.bool(),
            restored: random.u8(..) < 4,
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for act in &self.start {
            writeln!(f, "  {act:?}")?;
        }
        writeln!(
            f,
            "  pause {:?}, first look (the world is read first: {})",
            self.before_first_look, self.read_first
        )?;
        for (i, act) in self.work.iter().enumerate() {
            if self.look_between == Some(i) {
                writeln!(f, "  a look in between")?;
            }
            writeln!(f, "  {act:?}")?;
        }
        write!(f, "  pause {:?}, second look", self.before_second_look)
    }
}
