//! The one environment that agent and gates share, and the secrets that are taken out of what is written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use triphammer_model::Redactor;
use triphammer_model::environment::{is_shared, looks_secret};

/// Name and value, as the operating system has them.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// The environment for agent and gates: the shared list, what the configuration adds, `.local/bin` first in `PATH`.
pub(crate) fn shared(workspace: &Path, extra: &[String]) -> Variables {
    let mut env: Variables =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_shared)).collect();
    add(&mut env, extra);
    let bin = workspace.join(".local/bin");
    let old =
        get(&env, "PATH").map_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"), OsStr::to_owned);
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(old);
    set(&mut env, "PATH", path);
    // Written bytecode is told stale by whole seconds and sizes: a quick edit would be judged by what was before it.
    if get(&env, "PYTHONDONTWRITEBYTECODE").is_none() {
        set(&mut env, "PYTHONDONTWRITEBYTECODE", OsString::from("1"));
    }
    env
}

/// Adds `NAME` (passed on when set) and `NAME=value` entries.
pub(crate) fn add(env: &mut Variables, entries: &[String]) {
    for entry in entries {
        match entry.split_once('=') {
            Some((name, value)) => set(env, name, OsString::from(value)),
            None => {
                if let Some(value) = std::env::var_os(entry) {
                    set(env, entry, value);
                }
            }
        }
    }
}

/// The value of a variable.
pub(crate) fn get<'a>(env: &'a Variables, name: &str) -> Option<&'a OsStr> {
    env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str())
}

/// Gives a variable its value.
pub(crate) fn set(env: &mut Variables, name: &str, value: OsString) {
    env.retain(|(n, _)| n != name);
    env.push((OsString::from(name), value));
    env.sort();
}

/// The names only, sorted.
pub(crate) fn names(env: &Variables) -> Vec<String> {
    let mut names: Vec<String> = env.iter().map(|(n, _)| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Redacts the values of variables that look secret by name, of those named, and the passwords inside addresses that
/// shared variables hold, such as a proxy's.
pub(crate) fn redactor(named: &[String], entries: &[String]) -> Redactor {
    let mut secrets = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        if looks_secret(&name) || named.contains(&name) {
            secrets.push((name, value.as_bytes().to_vec()));
        } else if is_shared(&name)
            && let Some(password) = value.to_str().and_then(password_in)
        {
            secrets.push((name, password.as_bytes().to_vec()));
        }
    }
    let written = entries.iter().filter_map(|entry| entry.split_once('='));
    let secret = written.filter(|(name, _)| looks_secret(name) || named.iter().any(|n| n == name));
    secrets.extend(secret.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())));
    Redactor::new(secrets)
}

/// The password of an address such as `http://user:password@host/`.
fn password_in(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (userinfo, _) = authority.rsplit_once('@')?;
    userinfo.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    #[test]
    fn finds_passwords_in_addresses() {
        assert_eq!(super::password_in("http://ann:s3cret@localhost:3128/"), Some("s3cret"));
        for none in ["http://localhost:3128", "http://ann@localhost", "direct", "http://host/a:b@c"] {
            assert_eq!(super::password_in(none), None, "{none}");
        }
    }
}
