//! Reading the configuration again (HT-11).

use super::Served;
use crate::{
    child::{fed, program, toolyard},
    place::dir,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A token's section, and its secret.
struct Made {
    section: String,
    secret: String,
}

fn token(name: &str, scopes: &[&str]) -> Made {
    let scopes: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", scope]).collect();
    let made = toolyard(&[&["token", "new", name, "--json"], scopes.as_slice()].concat(), "").json();
    let section =
        format!("[server.tokens.{name}]\nsha256 = {}\nscopes = {}\n", made["sha256"], made["scopes"]);
    Made { section, secret: made["token"].as_str().unwrap().to_owned() }
}

fn configure(place: &Path, parts: &[&str]) {
    fs::write(place.join("toolyard.toml"), parts.concat()).unwrap();
}

fn width(served: &Served, token: &str) -> Value {
    let (_, status) = served.get("/status", token);
    let pools = status["pools"].as_array().unwrap();
    pools.iter().find(|pool| pool["class"] == "read").unwrap()["width"].clone()
}

/// HT-11: pools, rules and tokens change; what does not is named, each time; and whoever was removed is refused.
#[test]
fn what_can_change_changes() {
    let place = dir("serve-reload");
    let (op, ci, dev) = (token("op", &["operate"]), token("ci", &["call"]), token("dev", &["call"]));
    configure(&place, &["[pools]\nread = 2\n", &op.section, &ci.section]);
    let served = Served::start(&place, &[]);
    let reload = || served.post("/reload", Some(&op.secret), &json!({}));
    let nothing = json!({"changed": [], "needs_restart": []});
    assert_eq!(reload(), (200, nothing));
    assert_eq!(served.post("/reload", Some(&ci.secret), &json!({})).0, 403);
    assert_eq!(served.post("/sessions", Some(&ci.secret), &json!({"id": "a"})).0, 201);

    let next = "[pools]\nread = 3\n[policy.rules]\necho = \"deny\"\n[policy.capabilities]\nnet = []\n\
        [session]\nmax_in_flight = 5\n[server]\nhosts = [\"tools.example\"]\n";
    configure(&place, &[next, &op.section, &dev.section, "workspaces = [\".\"]\n"]);
    let changed = ["policy.rules", "pools.read", "server.tokens.ci", "server.tokens.dev"];
    let left =
        ["policy.capabilities", "server.hosts", "session.max_in_flight", "server.tokens.dev.workspaces"];
    assert_eq!(reload(), (200, json!({"changed": changed, "needs_restart": left})));
    assert_eq!(width(&served, &op.secret), 3);
    assert_eq!(served.get("/sessions", &ci.secret).0, 401);
    assert_eq!(served.post("/sessions", Some(&dev.secret), &json!({"id": "b"})).0, 201);
    let (status, answer) = served.post("/sessions/b/calls", Some(&dev.secret), &json!({"name": "echo"}));
    assert!(status == 200 && answer.to_string().contains("permission_denied"), "{answer}");
    // The session of the removed token is still his.
    assert_eq!(served.get("/sessions/a", &op.secret).1["owner"], "ci");
    assert_eq!(reload(), (200, json!({"changed": [], "needs_restart": left})));
    assert_eq!(served.end(), Some(130));
}

/// HT-11: an invalid file changes nothing, and is reported as `check` reports it.
#[test]
fn an_invalid_file_changes_nothing() {
    let place = dir("serve-reload-invalid");
    let op = token("op", &["operate"]);
    configure(&place, &["[pools]\nread = 2\n", &op.section]);
    let served = Served::start(&place, &[]);
    configure(&place, &["[pools]\nread = 3\nconcurrent = 0\n[poool]\n"]);
    let (status, problem) = served.post("/reload", Some(&op.secret), &json!({}));
    assert_eq!((status, &problem["code"]), (422, &json!("invalid_configuration")), "{problem}");
    let mut check = program(&["check"]);
    check.current_dir(&place);
    let checked = fed(check, "").stderr;
    let errors = problem["errors"].as_array().unwrap();
    let details: String =
        errors.iter().map(|error| format!("toolyard: {}\n", error["detail"].as_str().unwrap())).collect();
    assert_eq!(details, checked);
    let lines: Vec<&Value> = errors.iter().map(|error| &error["line"]).collect();
    assert_eq!(lines, [3, 4]);
    assert_eq!(width(&served, &op.secret), 2);
    assert_eq!(served.end(), Some(130));
}

/// HT-11: SIGHUP does the same, and what came of it is said.
#[test]
fn a_hang_up_reloads() {
    let place = dir("serve-reload-signal");
    let op = token("op", &["operate"]);
    configure(&place, &["[pools]\nread = 2\n", &op.section]);
    let mut served = Served::start(&place, &[]);
    let says = |served: &mut Served, what: &str| {
        served.signal(Signal::HUP);
        let mut said = served.said.by_ref().map(Result::unwrap);
        said.find(|line| line.contains(what)).unwrap_or_else(|| panic!("it ended without {what}"))
    };
    configure(&place, &["[pools]\nread = 4\n[server]\nbody = \"1MiB\"\n", &op.section]);
    let said = says(&mut served, "was read again");
    assert!(said.ends_with("changed pools.read; needs a restart: server.body"), "{said}");
    assert_eq!(width(&served, &op.secret), 4);
    configure(&place, &["[pools]\nread = 0\n"]);
    let said = says(&mut served, "line 2");
    assert!(said.contains("[pools] read must be a whole number from 1"), "{said}");
    assert_eq!(width(&served, &op.secret), 4);
    assert_eq!(served.end(), Some(130));
}

/// HT-6, HT-11: a program that has made its tokens and its page keeps them until it is started again.
#[test]
fn tokens_of_its_own_stay() {
    let place = dir("serve-reload-own");
    let op = token("op", &["operate"]);
    let mut served = Served::start(&place, &[]);
    let own = served.told["token"].as_str().unwrap().to_owned();
    configure(&place, &[&op.section]);
    served.signal(Signal::HUP);
    let mut said = served.said.by_ref().map(Result::unwrap);
    let line = said.find(|line| line.contains("was read again")).unwrap();
    assert!(line.ends_with("changed nothing; needs a restart: server.tokens.op"), "{line}");
    assert_eq!(served.get("/sessions", &own).0, 200);
    assert_eq!(served.get("/sessions", &op.secret).0, 401);
    assert_eq!(served.end(), Some(130));
}
