//! No file says where packages are downloaded from: that is a matter of the machine that builds, and a name of a
//! mirror in a committed file breaks the build everywhere else.

use super::source::Source;

/// Parts of a host's name that say what it serves.
const PARTS: [&str; 9] =
    ["registry", "registries", "index", "mirror", "mirrors", "artifactory", "nexus", "proxy", "verdaccio"];

/// Where cargo takes packages from, as its lock file names it.
const DEFAULT: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check(source: &Source) -> Vec<String> {
    // The samples below would be found.
    if source.path == "crates/xtask/src/tidy/hosts.rs" {
        return Vec::new();
    }
    let numbered = source.text.lines().enumerate();
    numbered
        .filter_map(|(i, line)| Some((i + 1, fault(&source.path, line)?)))
        .map(|(line, what)| {
            format!("{}:{line}: {what}; leave that to the machine's own settings", source.path)
        })
        .collect()
}

fn fault(path: &str, line: &str) -> Option<String> {
    if path == "Cargo.lock" {
        let named = line.strip_prefix("source = \"")?.trim_end_matches('"');
        return (named != DEFAULT).then(|| format!("packages from `{named}`"));
    }
    if path.starts_with(".cargo/")
        && ["[source", "[registr"].iter().any(|table| line.trim().starts_with(table))
    {
        return Some(format!("`{}` sets where packages come from", line.trim()));
    }
    let hosts = line.split("://").skip(1).map(|rest| {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '@');
        let authority = &rest[..rest.find(|c| !inside(c)).unwrap_or(rest.len())];
        let host = authority.rsplit('@').next().unwrap_or(authority);
        host.split(':').next().unwrap_or(host)
    });
    let mut registries = hosts.filter(|host| host.split(['.', '-', '_']).any(|part| PARTS.contains(&part)));
    registries.next().map(|host| format!("the registry host `{host}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hosts_that_serve_packages() {
        let found = |path: &str, line: &str| fault(path, line).is_some();
        assert!(found("README.md", "see https://registry.example.org/x"));
        assert!(found(".npmrc", "cache=http://user:key@npm-mirror.example.org:8080/"));
        assert!(found("a.toml", "index = \"sparse+https://index.example.org/\""));
        assert!(found(".cargo/config.toml", "[source.crates-io]"));
        assert!(found("Cargo.lock", "source = \"registry+https://example.org/index\""));
        assert!(found("Cargo.lock", "source = \"git+https://example.org/x.git#1\""));
        assert!(!found("Cargo.lock", &format!("source = \"{DEFAULT}\"")));
        assert!(!found(
            "README.md",
            "https://docs.rs/x and a registry of names, https://example.org/registry"
        ));
        assert!(!found(".cargo/config.toml", "[alias]"));
    }
}
