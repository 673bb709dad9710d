//! Where the usual tools keep what they fetch and build: writable for agent and gates, since they are of little use without.
//!
//! Folders with a person's own programs, such as `~/.cargo/bin`, or with settings that name programs are not among them. Some of
//! these caches hold programs all the same (of `npx`, of Gradle, of Go): what an agent puts there a person's tools may run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::environment::{Variables, get};

/// The cache of a tool.
struct ToolCache {
    /// Its program; where it is found, folders that are missing are made. Empty is any tool.
    program: &'static str,
    /// The variable that moves it.
    variable: &'static str,
    /// Where it is below the person's folder; empty where only the variable says.
    usual: &'static str,
    /// What of it is a cache; empty is all of it.
    parts: &'static [&'static str],
    /// Whether it is made where it is missing and the tool is here. Not where a tool takes the folder's being there for a wish.
    is_made: bool,
}

/// A cache that is one whole folder, and is not made.
const fn cache(program: &'static str, variable: &'static str, usual: &'static str) -> ToolCache {
    ToolCache { program, variable, usual, parts: &[], is_made: false }
}

impl ToolCache {
    /// Of which only these parts are a cache.
    const fn parts(self, parts: &'static [&'static str]) -> Self {
        Self { parts, ..self }
    }

    /// Which is made where it is missing.
    const fn made(self) -> Self {
        Self { is_made: true, ..self }
    }
}

/// Those parts that are files.
const FILES: [&str; 3] = [".package-cache", ".package-cache-mutate", ".global-cache"];

const CACHES: [ToolCache; 31] = [
    cache("sh", "XDG_CACHE_HOME", ".cache").made(),
    cache("cargo", "CARGO_HOME", ".cargo")
        .parts(&["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"])
        .made(),
    cache("cargo", "CARGO_TARGET_DIR", "").made(),
    cache("sccache", "SCCACHE_DIR", ""),
    cache("ccache", "CCACHE_DIR", ".ccache"),
    cache("npm", "NPM_CONFIG_CACHE", ".npm").made(),
    cache("pnpm", "", ".local/share/pnpm/store"),
    cache("yarn", "", ".yarn/berry"),
    cache("bun", "BUN_INSTALL", ".bun").parts(&["install/cache"]),
    cache("deno", "DENO_DIR", ""),
    cache("corepack", "COREPACK_HOME", ""),
    cache("pip", "PIP_CACHE_DIR", ""),
    cache("uv", "UV_CACHE_DIR", ""),
    cache("poetry", "POETRY_CACHE_DIR", ""),
    cache("go", "GOPATH", "go").parts(&["pkg"]).made(),
    cache("go", "GOMODCACHE", ""),
    cache("go", "GOCACHE", ""),
    cache("zig", "ZIG_GLOBAL_CACHE_DIR", ""),
    cache("gradle", "GRADLE_USER_HOME", ".gradle").parts(&[
        "caches",
        "daemon",
        "native",
        "wrapper",
        "notifications",
        "workers",
        ".tmp",
    ]),
    cache("mvn", "", ".m2/repository"),
    cache("sbt", "", ".ivy2/cache"),
    cache("dotnet", "NUGET_PACKAGES", ".nuget/packages"),
    cache("dotnet", "", ".local/share/NuGet"),
    cache("bundle", "", ".bundle").parts(&["cache"]),
    cache("gem", "", ".local/share/gem"),
    cache("composer", "COMPOSER_CACHE_DIR", ".composer/cache"),
    cache("cabal", "CABAL_DIR", ".cabal").parts(&["packages", "store", "logs"]),
    cache("stack", "STACK_ROOT", ".stack").parts(&["pantry", "snapshots"]),
    cache("mix", "HEX_HOME", ".hex").parts(&["packages"]),
    cache("dart", "PUB_CACHE", ".pub-cache"),
    cache("swift", "", ".swiftpm/cache"),
];

/// What of `env` is a tool's cache. The usual ones of tools that are here are made where they are missing and `make` says so: a
/// fence cannot let somebody make what has no parent that is writable.
pub(crate) fn places(env: &Variables, make: bool) -> Vec<PathBuf> {
    let home = get(env, "HOME").map(Path::new).filter(|home| home.is_absolute());
    let path = get(env, "PATH").unwrap_or_default();
    let mut places = Vec::new();
    for tool in &CACHES {
        let named =
            (!tool.variable.is_empty()).then(|| get(env, tool.variable)).flatten().filter(|v| !v.is_empty());
        let base = match (named, home) {
            (Some(named), _) => PathBuf::from(named),
            (None, Some(home)) if !tool.usual.is_empty() => home.join(tool.usual),
            _ => continue,
        };
        if !base.is_absolute() {
            continue;
        }
        let is_here = is_on(path, tool.program);
        let parts = if tool.parts.is_empty() { &[""] } else { tool.parts };
        for part in parts {
            let place = if part.is_empty() { base.clone() } else { base.join(part) };
            if make && is_here && tool.is_made && !place.exists() {
                create(&place, FILES.contains(part));
            }
            places.push(place);
        }
    }
    places
}

/// What cannot be made is not there, and is passed over.
fn create(place: &Path, is_file: bool) {
    if !is_file {
        let _ = std::fs::create_dir_all(place);
    } else if place.parent().is_some_and(Path::is_dir) {
        let _ = std::fs::OpenOptions::new().create(true).append(true).open(place);
    }
}

fn is_on(path: &OsStr, program: &str) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &Path)]) -> Variables {
        pairs.iter().map(|(name, value)| (name.into(), value.as_os_str().to_owned())).collect()
    }

    #[test]
    fn caches_are_where_the_variables_say_and_made_for_tools_that_are_here() {
        let room = tempfile::tempdir().unwrap();
        let at = |path: &str| room.path().join(path);
        std::fs::create_dir_all(at("bin")).unwrap();
        for tool in ["cargo", "go"] {
            std::fs::write(at("bin").join(tool), "").unwrap();
        }
        let env = env(&[
            ("HOME", &at("home")),
            ("PATH", &at("bin")),
            ("GOPATH", &at("gone")),
            ("UV_CACHE_DIR", Path::new("relative")),
        ]);
        let places = places(&env, true);
        for (place, is_made) in [
            ("home/.cargo/registry", true),
            ("home/.cargo/git", true),
            ("home/.cargo/.package-cache", true),
            ("gone/pkg", true),
            ("home/.npm", false),
            ("home/.cache", false),
        ] {
            assert!(places.contains(&at(place)), "{place}");
            assert_eq!(at(place).exists(), is_made, "{place}");
        }
        assert!(at("home/.cargo/.package-cache").is_file());
        for stranger in ["home", "home/.cargo", "home/.cargo/bin", "gone", "home/go/pkg"] {
            assert!(!places.contains(&at(stranger)), "{stranger}");
        }
        assert!(places.iter().all(|place| place.is_absolute()));
    }
}
