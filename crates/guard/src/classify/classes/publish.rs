//! Publishing, and taking back what was published.

use super::super::arg::Arg;
use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible::Publish;
use super::super::options::{begins, has_flag};
use super::rules::{self, Rule, rule};

const RULES: &[Rule] = &[
    rule("npm pnpm bun", "publish|unpublish"),
    rule("yarn", "publish|npm publish"),
    rule("lerna jsr deno", "publish"),
    rule("changeset", "publish"),
    Rule { lets: "-d", ..rule("semantic-release", "") },
    rule("cargo", "publish|yank|workspaces publish|ws publish|smart-release"),
    Rule { needs: "--execute -x", ..rule("cargo", "release") },
    rule("twine", "upload"),
    rule("flit poetry uv hatch pdm", "publish"),
    rule("maturin", "publish|upload"),
    rule("gem", "push|yank"),
    rule("rake", "release"),
    rule("docker podman nerdctl buildah", "push|image push|manifest push|compose push"),
    Rule {
        needs: "--push",
        ..rule("docker podman nerdctl depot", "build|buildx build|buildx bake|bake|compose build")
    },
    rule("crane", "push|copy|delete|tag"),
    rule("oras", "push|cp"),
    Rule { lets: "--draft -d", ..rule("gh", "release create") },
    rule("gh", "release delete|release upload|repo delete|repo archive|gist create"),
    rule("glab", "release create|release delete|repo delete|project delete"),
    Rule { lets: "--snapshot --skip=publish --skip-publish", ..rule("goreleaser", "release") },
    rule("vsce ovsx", "publish|unpublish"),
    rule("helm", "push"),
    rule("nuget", "push|delete"),
    rule("dotnet", "nuget push|nuget delete"),
    rule("mix", "hex.publish|hex.retire"),
    rule("rebar3", "hex publish"),
    Rule { lets: "-n", ..rule("dart flutter", "pub publish") },
    rule("pod", "trunk push|trunk delete"),
    rule("luarocks conan anaconda", "upload"),
    Rule { needs: "--publish", ..rule("cabal", "upload") },
    rule("stack", "upload"),
    rule("lein", "deploy"),
    rule("opam", "publish"),
    rule("snapcraft", "upload|push|release"),
    rule("wasm-pack", "publish"),
    rule("eas", "submit"),
    rule("web-ext", "sign"),
    rule("huggingface-cli hf", "upload|repo delete|upload-large-folder"),
    rule("mkdocs", "gh-deploy"),
    Rule { needs: "-d --dist", ..rule("gh-pages", "") },
];

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    rules::judge(RULES, Publish, call, verdicts);
    let goals = || call.args.iter().filter(|arg| !arg.is_option());
    match call.name {
        "mvn" | "mvnw" => {
            let skipped = call
                .args
                .iter()
                .any(|arg| arg.starts_with("-Dmaven.deploy.skip") && !arg.text.ends_with("false"));
            let deploys = |arg: &Arg| {
                matches!(arg.text.as_str(), "deploy" | "deploy:deploy" | "release:perform" | "site-deploy")
            };
            if !skipped && goals().any(deploys) {
                verdicts.push(Verdict::sure(Publish, "its goal `deploy` publishes"));
            }
        }
        "gradle" | "gradlew" => {
            let publishes = |arg: &Arg| {
                let task = arg.text.rsplit(':').next().unwrap_or_default();
                task.starts_with("publish") && !task.ends_with("ToMavenLocal")
                    || matches!(task, "uploadArchives" | "closeAndReleaseRepository")
            };
            if goals().any(publishes) && !has_flag(call.args, "-m") && !has_flag(call.args, "--dry-run") {
                verdicts.push(Verdict::sure(Publish, "its task publishes"));
            }
        }
        "sbt" => {
            let publishes =
                |arg: &Arg| matches!(arg.text.as_str(), "publish" | "publishSigned" | "sonatypeRelease");
            if goals().any(publishes) {
                verdicts.push(Verdict::sure(Publish, "its task publishes"));
            }
        }
        "python" | "python3"
            if call.args.iter().any(|arg| arg.text.ends_with("setup.py"))
                && goals().any(|arg| arg.is("upload")) =>
        {
            verdicts.push(Verdict::sure(Publish, "`setup.py upload` publishes"));
        }
        "skopeo"
            if begins(call.args, &["copy"])
                && goals().nth(2).is_some_and(|arg| arg.starts_with("docker://")) =>
        {
            verdicts.push(Verdict::sure(Publish, "`skopeo copy` to a registry publishes"));
        }
        "gh" if begins(call.args, &["api"]) && deletes(call.args) => {
            verdicts.push(Verdict::sure(Publish, "`gh api` with DELETE deletes on the server"));
        }
        _ => {}
    }
}

/// `-X DELETE`, `--method=DELETE`
fn deletes(args: &[Arg]) -> bool {
    let behind = args.iter().zip(args.iter().skip(1)).any(|(flag, value)| {
        (flag.is("-X") || flag.is("--method")) && value.text.eq_ignore_ascii_case("DELETE")
    });
    behind
        || args.iter().any(|arg| {
            ["-X", "--method="].iter().any(|flag| {
                arg.text.strip_prefix(flag).is_some_and(|value| value.eq_ignore_ascii_case("DELETE"))
            })
        })
}
