//! Deployments and infrastructure.

use super::super::arg::Arg;
use super::super::call::{Call, Verdict};
use super::super::judgement::Irreversible::Deploy;
use super::super::options::{Options, begins, has_flag};
use super::rules::{self, Rule, rule};

const RULES: &[Rule] = &[
    rule(
        "wrangler",
        "deploy|publish|delete|rollback|pages deploy|pages publish|pages project delete|versions deploy|d1 delete|r2 bucket delete|kv namespace delete|secret delete",
    ),
    Rule { needs: "--prod --production --target=production", ..rule("vercel now", "") },
    rule("vercel now", "promote|rollback|remove|rm"),
    Rule { needs: "--prod -p --prod-if-unlocked --production", ..rule("netlify ntl", "deploy") },
    rule("netlify ntl", "sites:delete"),
    rule("firebase", "deploy|hosting:disable|functions:delete|firestore:delete|database:remove"),
    rule(
        "fly flyctl",
        "deploy|destroy|apps destroy|app destroy|machine destroy|machines destroy|volumes destroy|volume destroy|scale|secrets unset",
    ),
    rule("gcloud", "app deploy|run deploy|functions deploy"),
    rule(
        "aws",
        "s3 rb|cloudformation deploy|cloudformation update-stack|ecs update-service|lambda update-function-code|deploy create-deployment|elasticbeanstalk update-environment|amplify start-deployment",
    ),
    Rule { needs: "--recursive", ..rule("aws", "s3 rm") },
    Rule { needs: "--delete", ..rule("aws", "s3 sync") },
    rule("az", "webapp up|webapp deploy|deployment group create|deployment sub create|functionapp deploy"),
    Rule { lets: "-n", ..rule("gsutil", "rm|rb") },
    rule("serverless sls", "deploy|remove|rollback"),
    rule("sam", "deploy|delete"),
    rule("cdk", "deploy|destroy"),
    rule(
        "terraform tofu terragrunt",
        "apply|destroy|state rm|workspace delete|run-all apply|run-all destroy|run --all apply|run --all destroy",
    ),
    Rule { lets: "--preview-only", ..rule("pulumi", "up|update|destroy|stack rm|state delete") },
    rule(
        "kubectl oc k",
        "delete|apply|drain|replace|patch|scale|edit|create|rollout restart|rollout undo|set image|set env|taint|cordon",
    ),
    rule("helm", "upgrade|uninstall|delete|del|install|rollback"),
    rule("helmfile", "apply|sync|destroy|delete"),
    rule("argocd", "app sync|app delete|app rollback"),
    rule("flux", "delete|uninstall|reconcile"),
    rule("skaffold", "run|deploy|delete"),
    Rule {
        lets: "--check -C --syntax-check --list-tasks --list-hosts --list-tags",
        ..rule("ansible-playbook", "")
    },
    rule("kamal mrsk", "deploy|redeploy|rollback|remove|setup"),
    rule("eb", "deploy|terminate"),
    rule("railway", "up|down|delete|redeploy"),
    rule("amplify", "push|publish|delete"),
    rule("nomad", "job run|job stop|run|stop"),
    rule("docker podman", "stack deploy|stack rm|service rm|service update|swarm leave"),
    rule("dokku", "apps:destroy|ps:stop"),
    rule("copilot", "deploy|svc deploy|svc delete|app delete|env delete"),
    rule("supabase", "functions deploy|projects delete"),
    rule("eksctl", "delete cluster|delete nodegroup"),
    rule("surge", ""),
];

/// Tools of a cloud in which one of these words anywhere behind the service deletes.
const CLOUDS: &[(&str, &[&str])] = &[
    ("gcloud", &["delete"]),
    ("az", &["delete", "purge"]),
    ("doctl", &["delete", "destroy"]),
    ("hcloud", &["delete"]),
    ("linode-cli", &["delete", "rm"]),
    ("scw", &["delete"]),
    ("oci", &["delete", "terminate"]),
    ("ibmcloud", &["delete"]),
    ("vultr-cli", &["delete"]),
];

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    rules::judge(RULES, Deploy, call, verdicts);
    if ["--help", "--dry-run", "--dryrun"].iter().any(|flag| has_flag(call.args, flag)) {
        return;
    }
    let operands = || call.args.iter().filter(|arg| !arg.is_option());
    if let Some((_, words)) = CLOUDS.iter().find(|(cloud, _)| *cloud == call.name)
        && let Some(word) = operands().take(5).find(|arg| words.contains(&arg.text.as_str()))
    {
        verdicts.push(Verdict::sure(
            Deploy,
            format!("`{} … {}` deletes what runs for others", call.name, word.text),
        ));
    }
    let why = match call.name {
        "aws" => {
            operands().take(6).any(is_aws_deletion).then_some("it deletes or ends what runs in the cloud")
        }
        "heroku" => {
            operands().next().filter(|arg| is_heroku_act(arg)).map(|_| "it changes or takes down an app")
        }
        "vercel" | "now" => {
            let options = Options::read(call.args, "", &["--target"]);
            let target = options.values(&["--target"]).any(|target| target == "production");
            target.then_some("it deploys to production")
        }
        "terraform" | "tofu" => {
            let destroys = begins(call.args, &["plan"]) && !call.args.is_empty();
            (!destroys && has_flag(call.args, "-destroy")).then_some("`-destroy` takes all of it down")
        }
        "cap" => operands().any(|arg| arg.is("deploy")).then_some("it deploys"),
        _ => None,
    };
    if let Some(why) = why
        && verdicts.iter().all(|verdict| verdict.class != Deploy)
    {
        verdicts.push(Verdict::sure(Deploy, why));
    }
}

fn is_aws_deletion(arg: &Arg) -> bool {
    ["delete-", "terminate-", "deregister-", "purge-", "schedule-key-deletion"]
        .iter()
        .any(|verb| arg.starts_with(verb))
}

fn is_heroku_act(arg: &Arg) -> bool {
    let act = arg.text.rsplit(':').next().unwrap_or_default();
    arg.text.contains(':')
        && matches!(
            act,
            "destroy"
                | "reset"
                | "release"
                | "rollback"
                | "promote"
                | "unset"
                | "delete"
                | "remove"
                | "scale"
                | "stop"
                | "restart"
                | "on"
        )
}
