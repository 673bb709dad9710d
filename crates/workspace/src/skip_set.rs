//! The skip set: names that are caches wherever they lie. It is data, and a living document; what it prunes is
//! disclosed with counts in every observation.

use std::sync::LazyLock;

/// When an entry of the skip set applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    /// Always.
    Always,
    /// Unless the workspace's git tracks files below it: then it is somebody's configuration.
    UnlessTracked,
}

/// Names of directories that hold nothing but what a tool can make again, or an agent's own state.
const DIRECTORIES: &[(&str, Force)] = &[
    // Version control.
    (".git", Force::Always),
    (".hg", Force::Always),
    (".svn", Force::Always),
    (".jj", Force::Always),
    // Dependencies and build state that tools keep beside the work.
    ("node_modules", Force::Always),
    ("__pycache__", Force::Always),
    (".zig-cache", Force::Always),
    ("zig-cache", Force::UnlessTracked),
    (".pytest_cache", Force::Always),
    (".mypy_cache", Force::Always),
    (".ruff_cache", Force::Always),
    (".hypothesis", Force::Always),
    (".ipynb_checkpoints", Force::Always),
    (".tox", Force::Always),
    (".nox", Force::Always),
    (".eggs", Force::Always),
    (".gradle", Force::UnlessTracked),
    (".next", Force::Always),
    (".nuxt", Force::Always),
    (".output", Force::UnlessTracked),
    (".turbo", Force::UnlessTracked),
    (".parcel-cache", Force::Always),
    (".svelte-kit", Force::Always),
    (".angular", Force::UnlessTracked),
    (".docusaurus", Force::Always),
    (".vite", Force::Always),
    (".nyc_output", Force::Always),
    (".terraform", Force::Always),
    (".terragrunt-cache", Force::Always),
    (".dart_tool", Force::Always),
    (".bundle", Force::UnlessTracked),
    (".sass-cache", Force::Always),
    (".stack-work", Force::Always),
    (".build", Force::UnlessTracked),
    (".direnv", Force::Always),
    (".ccls-cache", Force::Always),
    (".clangd", Force::UnlessTracked),
    (".bloop", Force::Always),
    (".metals", Force::Always),
    (".elixir_ls", Force::Always),
    // State folders of coding agents.
    (".claude", Force::UnlessTracked),
    (".codex", Force::UnlessTracked),
    (".opencode", Force::UnlessTracked),
    (".gemini", Force::UnlessTracked),
    (".qwen", Force::UnlessTracked),
    (".pi", Force::UnlessTracked),
    (".cursor", Force::UnlessTracked),
    (".goose", Force::UnlessTracked),
    (".crush", Force::UnlessTracked),
    (".amp", Force::UnlessTracked),
    (".kiro", Force::UnlessTracked),
    (".windsurf", Force::UnlessTracked),
    (".continue", Force::UnlessTracked),
    (".roo", Force::UnlessTracked),
    (".cline", Force::UnlessTracked),
    (".kilocode", Force::UnlessTracked),
    (".openhands", Force::UnlessTracked),
    (".specstory", Force::UnlessTracked),
    (".serena", Force::UnlessTracked),
];

/// Names of files that are no work: links to a repository, and state that an agent appends to at every call.
const FILES: &[&str] = &[".git", ".aider.chat.history.md", ".aider.input.history", ".aider.llm.history"];

/// Beginnings of directory names whose rest is a version number.
const DIRECTORY_PREFIXES: &[(&str, Force)] = &[(".aider.tags.cache.", Force::UnlessTracked)];

/// Names under which build tools are known to write what they can make again. Alone they mean nothing; together
/// with a valid `CACHEDIR.TAG` they make a new directory a cache.
const BUILD_NAMES: &[&str] = &[
    "target",
    "build",
    "_build",
    "dist",
    "dist-newstyle",
    "out",
    "obj",
    "cache",
    ".cache",
    "tmp",
    "temp",
    "coverage",
    "htmlcov",
    "venv",
    ".venv",
    "env",
    ".env",
    "virtualenv",
    "zig-out",
    "zig-pkg",
    "bazel-out",
    "buck-out",
    "DerivedData",
    ".target",
    "target-dir",
    "cargo-target",
];

/// Hidden directories that hold configuration which people write and commit.
const CONFIGURATION: &[&str] = &[
    ".github",
    ".gitlab",
    ".gitea",
    ".forgejo",
    ".circleci",
    ".buildkite",
    ".azuredevops",
    ".azure-pipelines",
    ".woodpecker",
    ".ci",
    ".cargo",
    ".config",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".husky",
    ".storybook",
    ".changeset",
    ".changes",
    ".changelog",
    ".yarn",
    ".mvn",
    ".docker",
    ".helm",
    ".kube",
    ".vitepress",
    ".vuepress",
    ".dumi",
    ".well-known",
    ".platform",
    ".ebextensions",
    ".semgrep",
    ".licenses",
    ".reuse",
    ".nix",
    ".bazel",
    ".sqlx",
];

fn find(table: &[(&str, Force)], name: &[u8]) -> Option<Force> {
    table.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, force)| *force)
}

/// Whether a directory of this name is a cache.
pub(crate) fn directory(name: &[u8]) -> Option<Force> {
    // Most names begin with a letter that none in the tables does.
    static FIRST: LazyLock<[bool; 256]> = LazyLock::new(|| {
        let mut first = [false; 256];
        let tables = DIRECTORIES.iter().chain(DIRECTORY_PREFIXES);
        tables.for_each(|(known, _)| first[usize::from(known.as_bytes()[0])] = true);
        first
    });
    if !name.first().is_some_and(|byte| FIRST[usize::from(*byte)]) {
        return None;
    }
    find(DIRECTORIES, name).or_else(|| {
        DIRECTORY_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix.as_bytes())).map(|(_, f)| *f)
    })
}

/// Whether a file of this name is no work.
pub(crate) fn is_file(name: &[u8]) -> bool {
    name.starts_with(b".") && FILES.iter().any(|known| known.as_bytes() == name)
}

/// Whether build tools are known to write under this name.
pub(crate) fn is_build_name(name: &[u8]) -> bool {
    BUILD_NAMES.iter().any(|known| known.as_bytes() == name)
}

/// Whether a hidden directory of this name is known to hold configuration.
pub(crate) fn is_configuration(name: &[u8]) -> bool {
    CONFIGURATION.iter().any(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_do_not_contradict_each_other() {
        for name in CONFIGURATION {
            assert!(directory(name.as_bytes()).is_none(), "{name} is both configuration and cache");
            assert!(name.starts_with('.'), "{name} is not hidden");
        }
        for (name, _) in DIRECTORIES {
            assert_eq!(DIRECTORIES.iter().filter(|(other, _)| other == name).count(), 1, "{name} twice");
        }
    }

    #[test]
    fn git_is_always_out() {
        assert!(FILES.iter().all(|name| name.starts_with('.')), "is_file looks at these alone");
        assert_eq!((directory(b".git"), is_file(b".git")), (Some(Force::Always), true));
        assert_eq!(directory(b".github"), None);
        assert_eq!(directory(b".aider.tags.cache.v4"), Some(Force::UnlessTracked));
        assert!(!is_file(b".aider.conf.yml"));
    }
}
