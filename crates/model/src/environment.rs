//! The environment that agent and gates share: an explicit list, not an inheritance.

/// Variables that are passed on when they are set: who and where one is, how text is written, where tools keep
/// their things, how the network is reached. None of them holds a secret by its purpose.
pub const SHARED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "TMPDIR",
    "LANG",
    "LANGUAGE",
    "COLORTERM",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_AUTO_INSTALL",
    "CARGO_TARGET_DIR",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "CARGO_BUILD_JOBS",
    "CARGO_NET_OFFLINE",
    "SCCACHE_DIR",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOPROXY",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "GONOSUMDB",
    "GOSUMDB",
    "NVM_DIR",
    "NODE_PATH",
    "NODE_OPTIONS",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "PNPM_HOME",
    "BUN_INSTALL",
    "COREPACK_HOME",
    "VOLTA_HOME",
    "DENO_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PIP_CACHE_DIR",
    "PIP_CERT",
    "PIP_FIND_LINKS",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "UV_CACHE_DIR",
    "POETRY_HOME",
    "JAVA_HOME",
    "MAVEN_OPTS",
    "GRADLE_USER_HOME",
    "ZIG_GLOBAL_CACHE_DIR",
    "ZIG_LOCAL_CACHE_DIR",
    "CC",
    "CXX",
    "AR",
    "LD",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "SDKROOT",
    "DEVELOPER_DIR",
    "HOMEBREW_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Prefixes of variables that are passed on when they are set.
pub const SHARED_PREFIXES: &[&str] = &["LC_"];

/// Whether a variable is passed on to agent and gates without being asked for.
pub fn is_shared(name: &str) -> bool {
    SHARED.contains(&name) || SHARED_PREFIXES.iter().any(|p| name.starts_with(p))
}

/// Whether a variable's name says that its value is a secret. Its value is then redacted wherever it turns up.
pub fn looks_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // Socket paths and file names that only point at secrets are needed to read a log.
    if upper.ends_with("_SOCK")
        || upper.ends_with("_PATH")
        || upper.ends_with("_FILE")
        || upper.ends_with("_DIR")
    {
        return false;
    }
    let parts: Vec<&str> = upper.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let any = |words: &[&str]| parts.iter().any(|p| words.contains(p));
    any(&[
        "KEY",
        "APIKEY",
        "TOKEN",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "PASS",
        "PWD_HASH",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTH",
        "BEARER",
        "COOKIE",
        "PAT",
        "PRIVATE",
        "SIGNING",
        "DSN",
    ]) || ["TOKEN", "SECRET", "PASSWORD", "APIKEY", "PASSWD"].iter().any(|w| upper.ends_with(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_secrets_by_name() {
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "NPM_TOKEN",
            "MYTOKEN",
            "PGPASSWORD",
            "CARGO_REGISTRY_TOKEN",
            "SENTRY_DSN",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in
            ["PATH", "HOME", "SSH_AUTH_SOCK", "KEYBOARD", "MONKEY_ISLAND", "PWD", "TOKENIZER_DIR", "AUTHOR"]
        {
            assert!(!looks_secret(name), "{name}");
        }
        assert!(SHARED.iter().all(|n| !looks_secret(n)), "a shared variable must not hold a secret");
    }
}
