//! The contest: all who look at one tree, in turn, round after round.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Map, Value, json};
use triphammer_model::Digest;

use super::forest::Forest;
use super::measure;
use super::peers::Peer;
use super::rows::Table;

/// Who looks within one process, served by the example program of the workspace crate.
const WITHIN: [&str; 4] = ["walk", "restat", "walkdir", "ignore"];

pub(crate) struct Contest<'a> {
    program: PathBuf,
    forest: &'a Forest,
    zones: PathBuf,
    server: Server,
    floors: Vec<Value>,
}

/// What all see.
pub(crate) struct Set {
    pub(crate) files: u64,
    /// Of the sorted paths, each ended by a zero byte.
    pub(crate) sha256: String,
    pub(crate) agreed: Vec<String>,
}

/// Who looks, in one round.
#[derive(Clone, Copy)]
enum Turn {
    Within(&'static str),
    /// Our walk as a program of its own.
    Once,
    Floor,
    Peer(Peer),
}

impl<'a> Contest<'a> {
    pub(crate) fn begin(program: &Path, forest: &'a Forest) -> Result<Self, String> {
        let zones = forest.beside.join("zones.json");
        output(Command::new(program).arg("zones").arg(&zones))?;
        let server = Server::start(program, &forest.tree)?;
        Ok(Self { program: program.to_path_buf(), forest, zones, server, floors: Vec::new() })
    }

    /// Whether all see the same files.
    ///
    /// # Errors
    /// Who does not, and an example.
    pub(crate) fn agreed(&self, peers: &[Peer]) -> Result<Set, String> {
        let listed =
            |who: &str| output(Command::new(&self.program).arg("list").arg(&self.forest.tree).arg(who));
        let truth = sorted(&listed(WITHIN[0])?);
        let mut agreed = vec![WITHIN[0].to_owned()];
        let mut check = |who: &str, seen: Vec<Vec<u8>>| match difference(&truth, &seen) {
            None => {
                agreed.push(who.to_owned());
                Ok(())
            }
            Some(path) => Err(format!(
                "{who} sees {} files, our walk {}; they differ in `{path}`",
                seen.len(),
                truth.len()
            )),
        };
        for who in &WITHIN[1..] {
            check(who, sorted(&listed(who)?))?;
        }
        for peer in peers {
            check(peer.name(), sorted(&output(&mut peer.list(self.forest))?))?;
        }
        if truth.len() as u64 != self.forest.files {
            return Err(format!("{} files were built, {} are seen", self.forest.files, truth.len()));
        }
        let mut text = truth.join(&0);
        text.push(0);
        Ok(Set { files: truth.len() as u64, sha256: Digest::of(&text).as_str().to_owned(), agreed })
    }

    /// Lets all look so many times. A first round, which warms the caches, is not counted, and each round begins with
    /// another one, so that nobody always comes after the same.
    pub(crate) fn rounds(&mut self, peers: &[Peer], rounds: u64) -> Result<Table, String> {
        let mut turns: Vec<Turn> = WITHIN.map(Turn::Within).to_vec();
        turns.extend([Turn::Floor, Turn::Once]);
        turns.extend(peers.iter().copied().map(Turn::Peer));
        let mut table = Table::new();
        for round in 0..=rounds {
            for turn in &turns {
                let (who, wall, cpu) = self.take(*turn)?;
                if round > 0 && !matches!(turn, Turn::Floor) {
                    table.entry(who.to_owned()).or_default().take(wall, cpu);
                }
            }
            if round == 0 {
                self.floors.clear();
            }
            turns.rotate_left(1);
        }
        Ok(table)
    }

    fn take(&mut self, turn: Turn) -> Result<(&'static str, f64, f64), String> {
        let files = self.forest.files;
        match turn {
            Turn::Within(who) => {
                let told = self.server.ask(who)?;
                if told["count"].as_u64() != Some(files) {
                    return Err(format!("{who}: {files} files were built, it says {told}"));
                }
                let (wall, cpu) = times(&told)?;
                Ok((who, wall, cpu))
            }
            Turn::Floor => {
                if cfg!(target_os = "linux") {
                    let told = self.server.ask("floor")?;
                    self.floors.push(told);
                }
                Ok(("floor", 0.0, 0.0))
            }
            Turn::Once => {
                let mut command = Command::new(&self.program);
                command.arg("once").arg(&self.forest.tree).arg(&self.zones);
                whole("once", command.stdin(Stdio::null()).stdout(Stdio::null()))
            }
            Turn::Peer(peer) => whole(peer.name(), &mut peer.look(self.forest)),
        }
    }

    /// The medians of what system calls cost.
    pub(crate) fn floor(&self) -> Option<Value> {
        let names = self.floors.first()?.as_object()?.keys();
        let middle = |name: &String| {
            let all = self.floors.iter().filter_map(|floor| floor[name.as_str()].as_f64());
            (name.clone(), json!(super::median(all.collect())))
        };
        Some(Value::Object(names.map(middle).collect::<Map<_, _>>()))
    }

    /// Peak memory of one walk as a program of its own.
    pub(crate) fn peak_mib(&self) -> Result<f64, String> {
        let told = output(Command::new(&self.program).arg("once").arg(&self.forest.tree).arg(&self.zones))?;
        let told: Value = serde_json::from_slice(&told).map_err(|e| format!("contest once: {e}"))?;
        let peak = told["peak_kib"].as_f64().ok_or("the kernel does not tell a process's peak of memory")?;
        Ok(peak / 1024.0)
    }

    /// Looks, trees and differences of attempts that each change so many files.
    pub(crate) fn attempts(&self, rounds: u64, changed: u64) -> Result<Table, String> {
        let store = self.forest.beside.join(format!("store-{}", std::process::id()));
        let mut command = Command::new(&self.program);
        command.arg("attempts").arg(&self.forest.tree).arg(&store);
        command.args([rounds.to_string(), changed.to_string()]);
        let told = output(&mut command);
        if let Err(e) = std::fs::remove_dir_all(&store) {
            eprintln!("{} is left over: {e}", store.display());
        }
        let mut table = Table::new();
        for line in String::from_utf8_lossy(&told?).lines() {
            let line: Map<String, Value> =
                serde_json::from_str(line).map_err(|e| format!("contest attempts: {e}"))?;
            for (part, took) in &line {
                let (wall, cpu) = times(took)?;
                table.entry(part.clone()).or_default().take(wall, cpu);
            }
        }
        Ok(table)
    }
}

/// The program that runs those who look within one process.
struct Server {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Server {
    fn start(program: &Path, tree: &Path) -> Result<Self, String> {
        let failed = |what: &str| format!("starting {}: {what}", program.display());
        let mut child = Command::new(program)
            .arg("serve")
            .arg(tree)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| failed(&e.to_string()))?;
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or_else(|| failed("it has no output"))?);
        Ok(Self { child, questions, answers })
    }

    fn ask(&mut self, who: &str) -> Result<Value, String> {
        let questions = self.questions.as_mut().ok_or("contest: its input is closed")?;
        writeln!(questions, "{who}").map_err(|e| format!("contest, asked for {who}: {e}"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| format!("contest, asked for {who}: {e}"))?;
        serde_json::from_str(&line)
            .map_err(|e| format!("contest, asked for {who}, said `{}`: {e}", line.trim()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.questions.take());
        let _ = self.answers.read_to_end(&mut Vec::new());
        let _ = self.child.wait();
    }
}

fn times(told: &Value) -> Result<(f64, f64), String> {
    let time = |name: &str| told[name].as_f64().ok_or_else(|| format!("contest gave no {name}: {told}"));
    Ok((time("wall_ms")?, time("cpu_ms")?))
}

/// A whole process, from its start to its end.
fn whole(who: &'static str, command: &mut Command) -> Result<(&'static str, f64, f64), String> {
    let usage = measure::run(command)?;
    if !usage.status.success() {
        return Err(format!("{who} failed ({})", usage.status));
    }
    Ok((who, usage.wall.as_secs_f64() * 1e3, usage.cpu.as_secs_f64() * 1e3))
}

fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| format!("starting {program}: {e}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{program} failed ({})", output.status))
    }
}

/// Paths that each end in a zero byte.
fn sorted(listed: &[u8]) -> Vec<Vec<u8>> {
    let mut paths: Vec<Vec<u8>> =
        listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
    paths.sort_unstable();
    paths
}

/// The first path in which two sorted lists differ.
fn difference(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Option<String> {
    let differs = (0..ours.len().max(theirs.len())).find(|i| ours.get(*i) != theirs.get(*i))?;
    let path = match (ours.get(differs), theirs.get(differs)) {
        (Some(ours), Some(theirs)) => ours.min(theirs),
        (one, other) => one.or(other)?,
    };
    Some(path.escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_where_lists_differ() {
        let list = |text: &str| sorted(text.replace(' ', "\0").as_bytes());
        assert_eq!(difference(&list("a c b"), &list("c b a")), None);
        assert_eq!(difference(&list("a b"), &list("a b c")), Some("c".to_owned()));
        assert_eq!(difference(&list("a b d"), &list("a c d")), Some("b".to_owned()));
        assert_eq!(difference(&list("a a"), &list("a")), Some("a".to_owned()));
    }
}
