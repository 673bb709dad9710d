//! Dropping stored data.

use super::super::arg::{Arg, UNKNOWN};
use super::super::call::{Call, Verdict};
use super::super::feed::Feed;
use super::super::judgement::Irreversible::DataLoss;
use super::super::options::{Options, begins};
use super::rules::{self, Rule, rule};
use super::sql;

const RULES: &[Rule] = &[
    rule("dropdb dropuser", ""),
    rule("mysqladmin mariadb-admin", "drop|* drop"),
    rule("prisma", "migrate reset"),
    Rule { needs: "--force-reset", ..rule("prisma", "db push") },
    rule("rails rake bin/rails", "db:drop|db:reset|db:purge|db:schema:load"),
    rule("supabase", "db reset"),
    rule("docker podman nerdctl", "volume rm|volume remove|volume prune"),
    Rule { needs: "--volumes", ..rule("docker podman", "system prune") },
    Rule { needs: "-v --volumes", ..rule("docker podman", "compose down") },
    Rule { needs: "-v --volumes", ..rule("docker-compose", "down") },
    rule("etcdctl", "del"),
    rule("kafka-topics kafka-topics.sh", "--delete"),
];

/// Clients of databases with a query language, the options whose value is a statement, and those whose value is a
/// file of statements.
const CLIENTS: &[(&str, &[&str], &[&str])] = &[
    ("psql", &["-c", "--command"], &["-f", "--file"]),
    ("mysql", &["-e", "--execute"], &[]),
    ("mariadb", &["-e", "--execute"], &[]),
    ("sqlite3", &["-cmd"], &["-init"]),
    ("sqlite", &["-cmd"], &["-init"]),
    ("duckdb", &["-c", "-s", "-cmd"], &["-f", "-init"]),
    ("clickhouse-client", &["-q", "--query"], &["--queries-file"]),
    ("clickhouse", &["-q", "--query"], &["--queries-file"]),
    ("cockroach", &["-e", "--execute"], &["-f", "--file"]),
    ("sqlcmd", &["-Q", "-q"], &["-i"]),
    ("cqlsh", &["-e", "--execute"], &["-f", "--file"]),
    ("snowsql", &["-q", "--query"], &["-f", "--filename"]),
    ("bq", &[], &[]),
    ("usql", &["-c", "--command"], &["-f", "--file"]),
    ("pgcli", &[], &[]),
    ("turso", &[], &[]),
    ("wrangler", &["--command"], &["--file"]),
];

/// Whether a program is a client of a database.
pub(crate) fn is_client(name: &str) -> bool {
    name != "wrangler" && CLIENTS.iter().any(|(client, ..)| *client == name)
}

/// Whether a client is given a file of statements.
pub(crate) fn reads_file(name: &str, args: &[Arg]) -> bool {
    let Some((.., files)) = CLIENTS.iter().find(|(client, ..)| *client == name) else { return false };
    args.iter().any(|arg| files.iter().any(|option| is_option_of(arg, option)))
}

fn is_option_of(arg: &Arg, option: &str) -> bool {
    let Some(rest) = arg.text.strip_prefix(option) else { return false };
    rest.is_empty() || rest.starts_with('=') || (option.len() == 2 && !option.starts_with("--"))
}

pub(super) fn judge(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    rules::judge(RULES, DataLoss, call, verdicts);
    statements(call, verdicts);
    match call.name {
        "redis-cli" | "valkey-cli" => {
            let flushes = |text: &str| text.split_whitespace().next().is_some_and(is_flush);
            let fed = matches!(call.feed, Feed::Text(text) if text.lines().any(flushes));
            if fed || call.args.iter().any(|arg| is_flush(&arg.text)) {
                verdicts.push(Verdict::sure(DataLoss, "it empties the store"));
            }
        }
        "mongo" | "mongosh" => {
            let drops = |text: &str| {
                ["dropDatabase(", ".drop(", "deleteMany({})", "remove({})"]
                    .iter()
                    .any(|act| text.contains(act))
            };
            let fed = matches!(call.feed, Feed::Text(text) if drops(text));
            if fed || call.args.iter().any(|arg| drops(&arg.text)) {
                verdicts.push(Verdict::sure(DataLoss, "it drops a database or a collection"));
            }
        }
        "python" | "python3" | "manage.py" | "django-admin" => {
            let manages = call.name.starts_with("manage") || call.name.starts_with("django");
            let act = if manages {
                begins(call.args, &["flush"])
            } else {
                begins(call.args, &["manage.py", "flush"])
            };
            if act {
                verdicts.push(Verdict::sure(DataLoss, "`flush` empties the database"));
            }
        }
        "php" | "artisan" => {
            let fresh = ["migrate:fresh", "migrate:reset", "db:wipe"];
            if call.args.iter().take(2).any(|arg| fresh.contains(&arg.text.as_str())) {
                verdicts.push(Verdict::sure(DataLoss, "it drops all tables"));
            }
        }
        "crontab" => {
            let options = Options::read(call.args, "u", &[]);
            if options.has(&["-r"]) {
                verdicts.push(Verdict::sure(
                    DataLoss,
                    "`crontab -r` deletes all of the table without keeping it",
                ));
            }
        }
        _ => {}
    }
}

fn is_flush(word: &str) -> bool {
    word.eq_ignore_ascii_case("FLUSHALL") || word.eq_ignore_ascii_case("FLUSHDB")
}

/// Whether a statement that a client is given is known only to the running shell.
pub(crate) fn is_unknown(name: &str, args: &[Arg]) -> bool {
    given(name, args).iter().any(|text| text.trim().chars().all(|c| c == UNKNOWN) && text.contains(UNKNOWN))
}

/// Reads the statements that a client is given.
fn statements(call: &Call<'_>, verdicts: &mut Vec<Verdict>) {
    if !CLIENTS.iter().any(|(client, ..)| *client == call.name)
        || call.args.iter().any(|arg| arg.is(":memory:"))
    {
        return;
    }
    let mut texts = given(call.name, call.args);
    if let Feed::Text(text) = call.feed {
        texts.push(text);
    }
    let why = texts.into_iter().find_map(sql::loss);
    verdicts.extend(why.map(|why| Verdict::sure(DataLoss, why)));
}

/// The statements among a client's arguments.
fn given<'a>(name: &str, args: &'a [Arg]) -> Vec<&'a str> {
    let Some((_, options, _)) = CLIENTS.iter().find(|(client, ..)| *client == name) else {
        return Vec::new();
    };
    let mut texts: Vec<&str> = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        for option in *options {
            let Some(rest) = arg.text.strip_prefix(option) else { continue };
            if let Some(value) = rest.strip_prefix('=') {
                texts.push(value);
            } else if rest.is_empty() {
                texts.extend(args.get(index + 1).map(|arg| arg.text.as_str()));
            } else if option.len() == 2 {
                texts.push(rest);
            }
        }
        // A letter in a cluster (`psql -qc 'DROP …'`) and a statement as an operand.
        let cluster = arg.is_option()
            && !arg.starts_with("--")
            && options.iter().any(|option| option.len() == 2 && arg.text.ends_with(&option[1..]));
        if cluster {
            texts.extend(args.get(index + 1).map(|arg| arg.text.as_str()));
        } else if !arg.is_option() && arg.text.contains(char::is_whitespace) {
            texts.push(&arg.text);
        }
    }
    texts
}
