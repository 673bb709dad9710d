//! Packs: which files a run's gates come from, and what they say.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use triphammer_model::GateName;

use crate::gate::Gate;
use crate::pack_file::{self, PackFileError};
use crate::ratchet::{Known, RatchetError, parse_baseline};

/// The texts that a run's gates are made of: `rust.toml`, ..., `baseline.json`. A run pins these bytes and reads
/// its gates from nothing else.
pub type PackTexts = BTreeMap<String, Vec<u8>>;

/// The name under which the ratchet's baseline is pinned.
pub const BASELINE: &str = "baseline.json";

/// Packs that are part of the program, by name.
const SHIPPED: [(&str, &str); 7] = [
    ("go", include_str!("../../../gates/go.toml")),
    ("honesty", include_str!("../../../gates/honesty.toml")),
    ("node", include_str!("../../../gates/node.toml")),
    ("python", include_str!("../../../gates/python.toml")),
    ("rust", include_str!("../../../gates/rust.toml")),
    ("shell", include_str!("../../../gates/shell.toml")),
    ("zig", include_str!("../../../gates/zig.toml")),
];

/// The names of the shipped packs, sorted.
pub fn shipped_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The text of a shipped pack.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// Packs could not be read or make no sense.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// No pack with that name.
    #[error("no pack `{name}`: neither {} nor a shipped one; there are: {known}", home.display())]
    Unknown {
        /// The name asked for.
        name: String,
        /// Where the home's would be.
        home: PathBuf,
        /// The names that exist.
        known: String,
    },
    /// A name that names no file beside the others.
    #[error(
        "`{name}` is no pack name: use lower-case letters, digits, `-` and `_`, or the path of a .toml file"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// A file could not be read.
    #[error("reading pack {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A pack's text is wrong.
    #[error(transparent)]
    File(#[from] PackFileError),
    /// Two gates share a name.
    #[error(
        "gates/{second}: gate `{gate}` is already in gates/{first}; rename one of them (a pack in the home's gates/ \
         replaces the shipped one of the same file name)"
    )]
    Duplicate {
        /// The gate.
        gate: GateName,
        /// The file that has it first.
        first: String,
        /// The file that has it again.
        second: String,
    },
    /// The committed baseline is wrong.
    #[error(transparent)]
    Baseline(#[from] RatchetError),
}

/// Reads the texts that a run will use. With `names`, exactly those packs; without, every command pack of the home
/// and every shipped one that the home does not replace. The home's `baseline.json` comes along when there is one.
///
/// A name that holds a `/` or ends in `.toml` is the path of a file.
///
/// # Errors
/// [`PackError`] when a pack does not exist or cannot be read. The texts are not parsed.
pub fn collect(names: Option<&[String]>, home_gates: &Path) -> Result<PackTexts, PackError> {
    let mut texts = PackTexts::new();
    if let Some(names) = names {
        for name in names {
            texts.insert(file_name(name), named(name, home_gates)?);
        }
    } else {
        for (name, text) in SHIPPED {
            texts.insert(format!("{name}.toml"), text.as_bytes().to_vec());
        }
        for path in home_packs(home_gates)? {
            if let Some(name) = path.file_name().and_then(|n| n.to_str()) {
                texts.insert(name.to_owned(), read(&path)?);
            }
        }
    }
    let baseline = home_gates.join(BASELINE);
    match std::fs::read(&baseline) {
        Ok(bytes) => {
            texts.insert(BASELINE.to_owned(), bytes);
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(PackError::Read { path: baseline, source }),
    }
    Ok(texts)
}

fn is_path(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))
}

/// The key in [`PackTexts`] for a name or path.
fn file_name(name: &str) -> String {
    if is_path(name) {
        let file = Path::new(name).file_name().and_then(|n| n.to_str());
        return file.unwrap_or("pack.toml").to_owned();
    }
    format!("{name}.toml")
}

fn named(name: &str, home_gates: &Path) -> Result<Vec<u8>, PackError> {
    if is_path(name) {
        return read(Path::new(name));
    }
    if !pack_file::is_name(name) {
        return Err(PackError::BadName { name: name.to_owned() });
    }
    let path = home_gates.join(format!("{name}.toml"));
    match std::fs::read(&path) {
        Ok(bytes) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some(text) = shipped_text(name) {
                return Ok(text.as_bytes().to_vec());
            }
            let mut known: Vec<String> = shipped_names().map(str::to_owned).collect();
            known.extend(
                home_packs(home_gates)?
                    .iter()
                    .filter_map(|p| p.file_stem().and_then(|s| s.to_str()).map(str::to_owned)),
            );
            known.sort();
            known.dedup();
            Err(PackError::Unknown { name: name.to_owned(), home: path, known: known.join(", ") })
        }
        Err(source) => Err(PackError::Read { path, source }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, PackError> {
    std::fs::read(path).map_err(|source| PackError::Read { path: path.to_owned(), source })
}

fn home_packs(home_gates: &Path) -> Result<Vec<PathBuf>, PackError> {
    let failed = |source| PackError::Read { path: home_gates.to_owned(), source };
    let entries = match std::fs::read_dir(home_gates) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|e| e == "toml") && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A run's packs, parsed.
#[derive(Clone, Debug)]
pub struct Packs {
    gates: Vec<Gate>,
    named: bool,
    baseline: Option<Known>,
}

impl Packs {
    /// Parses texts that [`collect`] gathered for the same `names`, or pinned copies of them.
    ///
    /// Gates keep the order of `names` and, within a pack, of the file; without names, packs go by name.
    ///
    /// # Errors
    /// [`PackError`] that names file, line and key.
    pub fn parse(texts: &PackTexts, names: Option<&[String]>) -> Result<Self, PackError> {
        let files: Vec<String> = match names {
            Some(names) => {
                let mut files: Vec<String> = Vec::new();
                for file in names.iter().map(|n| file_name(n)) {
                    if !files.contains(&file) {
                        files.push(file);
                    }
                }
                files
            }
            None => texts.keys().filter(|k| k.as_str() != BASELINE).cloned().collect(),
        };
        let mut gates: Vec<Gate> = Vec::new();
        let mut seen: BTreeMap<GateName, String> = BTreeMap::new();
        for file in files {
            let bytes = texts.get(&file).ok_or_else(|| PackError::Read {
                path: PathBuf::from(&file),
                source: io::Error::new(io::ErrorKind::NotFound, "it is not among the pinned packs"),
            })?;
            for gate in pack_file::parse(&file, bytes)? {
                if let Some(first) = seen.insert(gate.name().clone(), file.clone()) {
                    return Err(PackError::Duplicate { gate: gate.name().clone(), first, second: file });
                }
                gates.push(gate);
            }
        }
        let baseline = texts.get(BASELINE).map(|bytes| parse_baseline(bytes)).transpose()?;
        Ok(Self { gates, named: names.is_some(), baseline })
    }

    /// All gates, in pack order.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// Whether the packs were named, so that all of their gates apply.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// The ratchet's committed baseline.
    pub fn baseline(&self) -> Option<&Known> {
        self.baseline.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    fn gate_names(packs: &Packs) -> Vec<&str> {
        packs.gates().iter().map(|g| g.name().as_str()).collect()
    }

    #[test]
    fn every_shipped_pack_parses_alone_and_together() {
        let home = tempfile::tempdir().unwrap();
        for name in shipped_names() {
            let one = names(&[name]);
            let texts = collect(Some(&one), home.path()).unwrap();
            assert!(!Packs::parse(&texts, Some(&one)).unwrap().gates().is_empty(), "{name}");
        }
        let texts = collect(None, home.path()).unwrap();
        assert_eq!(texts.len(), SHIPPED.len());
        assert!(Packs::parse(&texts, None).unwrap().gates().len() >= 8);
    }

    #[test]
    fn the_home_wins_and_order_is_as_named() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(
            home.path().join("rust.toml"),
            "[[gate]]\nname = \"mine\"\nkind = \"test\"\nrun = [\"true\"]\n",
        )
        .unwrap();
        let asked = names(&["shell", "rust"]);
        let texts = collect(Some(&asked), home.path()).unwrap();
        let packs = Packs::parse(&texts, Some(&asked)).unwrap();
        assert_eq!(gate_names(&packs), ["shell-syntax", "mine"]);
    }

    #[test]
    fn refusals_say_what_and_where() {
        let home = tempfile::tempdir().unwrap();
        let error = collect(Some(&names(&["rsut"])), home.path()).unwrap_err().to_string();
        assert!(error.contains("no pack `rsut`") && error.contains("rust, shell, zig"), "{error}");
        assert!(
            collect(Some(&names(&["Rust!"])), home.path()).unwrap_err().to_string().contains("no pack name")
        );

        let gate = "[[gate]]\nname = \"same\"\nkind = \"test\"\nrun = [\"true\"]\n";
        std::fs::write(home.path().join("a.toml"), gate).unwrap();
        std::fs::write(home.path().join("b.toml"), gate).unwrap();
        let texts = collect(None, home.path()).unwrap();
        let error = Packs::parse(&texts, None).unwrap_err().to_string();
        assert!(error.starts_with("gates/b.toml: gate `same` is already in gates/a.toml"), "{error}");
    }

    #[test]
    fn a_file_can_be_named_and_pins_alone_suffice() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("extra.toml");
        std::fs::write(&file, "[[gate]]\nname = \"x\"\nkind = \"build\"\nrun = [\"true\"]\n").unwrap();
        let asked = names(&[file.to_str().unwrap()]);
        let texts = collect(Some(&asked), &home.path().join("none")).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(gate_names(&Packs::parse(&texts, Some(&asked)).unwrap()), ["x"]);
    }
}
