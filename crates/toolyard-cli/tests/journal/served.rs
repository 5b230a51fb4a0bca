//! `toolyard serve --journal`: a crash and a deploy are a pause for those who use it (HT-13, JR-5, JR-9, SM-10).

use crate::{
    child::{fed, program},
    shared::served::{Served, Two},
    yard::NOTE,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// A directory with a configuration, a journal, and the tokens of an agent and of Ada, who approves.
pub(crate) struct Place {
    directory: TempDir,
    pub(crate) two: Two,
}

impl Place {
    fn new() -> Self {
        Self::with("")
    }

    /// One in which every call runs without a question.
    pub(crate) fn that_asks_nobody() -> Self {
        Self::with("[confirmation]\ndefault = { write = \"auto\" }\n")
    }

    fn with(more: &str) -> Self {
        let (directory, two) = (tempfile::tempdir().unwrap(), Two::new());
        let place = directory.path();
        assert!(Command::new("mkfifo").arg(place.join("never")).status().unwrap().success());
        fs::create_dir(place.join("work")).unwrap();
        fs::write(place.join("toolyard.toml"), format!("{more}{NOTE}\n{}", two.config)).unwrap();
        Self { directory, two }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A life of the server.
    pub(crate) fn serve(&self) -> Served {
        let [config, journal] = ["toolyard.toml", "agent.journal"].map(|name| self.path().join(name));
        let args = ["--config", config.to_str().unwrap(), "--journal", journal.to_str().unwrap()];
        Served::start(&self.path().join("work"), &args)
    }

    /// The first life, in which the agent has opened its session.
    pub(crate) fn opened(&self) -> Served {
        let served = self.serve();
        assert_eq!(served.post("/sessions", Some(&self.two.agent), &json!({"id": "a"})).0, 201);
        served
    }

    /// Kills a life.
    fn killed(&self, mut served: Served) {
        served.signal(Signal::KILL);
        served.child.wait().unwrap();
    }

    fn effects(&self) -> usize {
        Self::effects_in(&self.effects_file()).len()
    }

    pub(crate) fn effects_file(&self) -> PathBuf {
        self.path().join("effects")
    }

    /// What was written, a line for each call.
    pub(crate) fn effects_in(file: &Path) -> Vec<String> {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The only question that is open.
    fn question(&self, served: &Served) -> Value {
        loop {
            let (status, mut open) = served.get("/sessions/a/confirmations", &self.two.ada);
            assert_eq!(status, 200, "{open}");
            if let [question] = open["confirmations"].as_array_mut().unwrap().as_mut_slice() {
                return question.take();
            }
        }
    }

    fn allow(&self, served: &Served, question: &Value) {
        let text = |name: &str| question[name].as_str().unwrap();
        let path = format!("/sessions/a/turns/{}/confirmations/{}", question["turn"], text("request_id"));
        let answer = json!({"decision": "allow", "digest": text("digest")});
        let (status, answered) = served.post(&path, Some(&self.two.ada), &answer);
        assert_eq!(status, 200, "{answered}");
    }
}

/// HT-13, JR-9: a server that is killed while a call waits for an answer asks again, and makes the call once.
#[test]
fn a_question_outlives_a_server() {
    let place = Place::new();
    let served = place.opened();
    let turn = place.two.turn(&served, "note", &json!({"text": "one"}));
    let question = place.question(&served);
    place.killed(served);

    let served = place.serve();
    let again = place.question(&served);
    assert_eq!(again["request_id"], question["request_id"]);
    place.allow(&served, &again);
    let outcome = place.two.outcome(&served, turn);
    assert_eq!((&outcome["status"], place.effects()), (&json!("ok"), 1), "{outcome}");
    place.killed(served);

    let served = place.serve();
    assert_eq!(place.two.outcome(&served, turn)["status"], "ok");
    assert_eq!((place.effects(), served.end()), (1, Some(130)));
}

/// JR-5: one that is killed while a call runs that changes something does not make it again.
#[test]
fn a_call_that_was_running_is_interrupted() {
    let place = Place::new();
    let served = place.opened();
    fs::write(place.path().join("waits"), "").unwrap();
    let turn = place.two.turn(&served, "note", &json!({"text": "one"}));
    place.allow(&served, &place.question(&served));
    while place.effects() == 0 {
        std::thread::yield_now();
    }
    place.killed(served);

    fs::remove_file(place.path().join("waits")).unwrap();
    let served = place.serve();
    let outcome = place.two.outcome(&served, turn);
    assert_eq!((&outcome["error"]["code"], place.effects()), (&json!("interrupted"), 1), "{outcome}");
    assert_eq!(served.end(), Some(130));
}

/// SM-10: a server that is told to end suspends what waits; whoever waits for it is told so.
#[test]
fn a_deploy_is_a_pause() {
    let place = Place::new();
    let served = place.opened();
    let turn = place.two.turn(&served, "note", &json!({"text": "one"}));
    place.question(&served);
    let waiting = served.send(&format!("GET /sessions/a/turns/{turn}?wait=60"), Some(&place.two.agent), "");
    // It is served: another request that comes after it has its answer.
    assert_eq!(served.get("/sessions/a", &place.two.agent).0, 200);
    let mut served = served;
    served.signal(Signal::TERM);
    let (status, told) = Served::answer(waiting);
    assert_eq!((status, &told["state"]), (200, &json!("suspended")), "{told}");
    assert_eq!(served.child.wait().unwrap().code(), Some(130));

    let served = place.serve();
    place.allow(&served, &place.question(&served));
    assert_eq!(place.two.outcome(&served, turn)["status"], "ok");
    assert_eq!((place.effects(), served.end()), (1, Some(130)));
}

/// JR-9: an answer that is recorded counts where nobody can be asked, and only for what it is about.
#[test]
fn a_recorded_answer_counts_where_nobody_can_be_asked() {
    let place = Place::new();
    let served = place.opened();
    let call = |id: &str| json!({"call_id": id, "name": "note", "arguments": {"text": id}});
    let calls = json!({"calls": [call("1"), call("2")]});
    assert_eq!(served.post("/sessions/a/turns", Some(&place.two.agent), &calls).0, 202);
    let questions = loop {
        let (_, open) = served.get("/sessions/a/confirmations", &place.two.ada);
        if open["confirmations"].as_array().unwrap().len() == 2 {
            break open;
        }
    };
    place.killed(served);

    let [config, journal, work] =
        ["toolyard.toml", "agent.journal", "work"].map(|name| place.path().join(name));
    let request = questions["confirmations"][0]["request_id"].as_str().unwrap();
    let approved = fed(program(&["journal", "approve", journal.to_str().unwrap(), request]), "");
    assert_eq!(approved.code, Some(0), "{approved:?}");
    let mut resume = program(&["run", "--quiet", "--session", "a", "--resume", "--journal"]);
    resume.arg(journal).arg("--config").arg(config).arg("--workspace").arg(work);
    let resumed = fed(resume, "");
    let results = &resumed.json()["results"];
    assert_eq!((&results[0]["status"], place.effects()), (&json!("ok"), 1), "{resumed:?}");
    assert_eq!(results[1]["error"]["code"], "user_denied", "{resumed:?}");
}
