//! Paths that lead out by something else than their name: `..`, links, and what `/proc` has of roots, directories and open
//! files.

use super::{
    alone, confined,
    containments::helper,
    yard::{Yard, run},
};
use std::{fs, os::unix::fs::symlink, path::Path};
use toolyard_process::{Confinement, End, Report};

/// Tries each way that there may be to the root, and from there to the directory `$OUT`: to read, list, enter, write,
/// create, rename and remove. Prints a line for each way that was tried, and what it found.
const TRIES: &str = r#"
ln -s / root
ln -s "$OUT" straight
ln -s ../../../../../../.. up
ln -s root chained
mkdir deep && ln -s ../up deep/up
exec 8<.
command exec 9</
try() {
    for way in "$@"; do
        echo "$way: $(cat "$way/secret" 2>&1)"
        echo "$way: $(cd "$way" 2>&1 && cat secret 2>&1)"
        echo "$way: $(ls "$way" 2>&1)"
        (echo written >>"$way/secret") 2>/dev/null
        (echo written >"$way/created") 2>/dev/null
        mv "$way/kept" "$way/moved" 2>/dev/null
        mv deep/mine "$way/" 2>/dev/null
        ln "$way/secret" stolen 2>/dev/null && cat stolen
        rm -f "$way/kept" 2>/dev/null
    done
}
try "$OUT" ../../../../../../.."$OUT" deep/../../../../../../../..//"$OUT" "$PWD/../../../../../..$OUT"
try straight root"$OUT" chained"$OUT" up"$OUT" deep/up"$OUT" made-before
for process in self thread-self 1 $$ $PPID; do
    for link in root cwd fd/0 fd/1 fd/2 fd/3 fd/8 fd/9; do
        try "/proc/$process/$link$OUT" "/proc/$process/$link/../../../../../../..$OUT"
    done
done
for link in /proc/[0-9]*/root /proc/[0-9]*/cwd /proc/[0-9]*/fd/* /dev/fd/*; do
    [ "$CONFINED" ] && echo "$link: $(cat "$link$OUT/secret" "$link/secret" 2>&1)"
done
echo tried
"#;

/// What is outside, and what was said when it was tried to be reached.
struct Tried {
    outside: Yard,
    text: String,
}

async fn tried(confinement: impl FnOnce(&Path) -> Option<Confinement>) -> Tried {
    let (yard, outside) = (Yard::new(), Yard::new());
    for name in ["secret", "kept"] {
        fs::write(outside.path().join(name), "content of others").unwrap();
    }
    symlink(outside.path(), yard.path().join("made-before")).unwrap();
    let program = yard.shell(TRIES).env("OUT", outside.path());
    let program = match confinement(&yard.path()) {
        Some(confinement) => program.env("CONFINED", "yes").confined(confinement),
        None => program,
    };
    let (text, report) = run(program, &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}: {text}");
    assert!(text.ends_with("tried\n"), "{text}");
    Tried { outside, text }
}

impl Tried {
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.outside.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Nothing was read, listed or changed.
    fn led_nowhere(&self) {
        let text = &self.text;
        assert!(text.lines().count() > 200, "{text}");
        assert!(!text.contains("content of others") && !text.contains(": kept"), "{text}");
        assert_eq!(self.names(), ["kept", "secret"], "{text}");
        let content = fs::read_to_string(self.outside.path().join("secret")).unwrap();
        assert_eq!(content, "content of others", "{text}");
    }
}

/// SB-4: in the sandbox *process*, without and with a way out,
#[tokio::test]
async fn no_path_leads_out_of_a_process() {
    if confined::is_missing().await {
        return;
    }
    tried(|path| Some(confined::within(path, true))).await.led_nowhere();
    tried(|path| Some(confined::within(path, true).door())).await.led_nowhere();
}

/// in the sandbox *landlock*.
#[tokio::test]
async fn no_path_leads_out_of_landlock() {
    if !alone::is_missing() {
        tried(|path| Some(alone::within(path, true))).await.led_nowhere();
    }
}

/// Without either these paths lead out.
#[tokio::test]
async fn without_a_confinement_these_paths_lead_out() {
    let tried = tried(|_| None).await;
    let (out, text) = (tried.outside.path().display().to_string(), &tried.text);
    for way in [
        out.clone(),
        format!("../../../../../../..{out}"),
        "straight".to_owned(),
        "made-before".to_owned(),
        format!("root{out}"),
        format!("chained{out}"),
        format!("deep/up{out}"),
        format!("/proc/self/root{out}"),
        format!("/proc/self/cwd/../../../../../../..{out}"),
        format!("/proc/self/fd/9{out}"),
    ] {
        let line = format!("{way}: content of others");
        assert!(text.lines().any(|said| said.starts_with(&line)), "{way}\n{text}");
    }
    assert_eq!(tried.names(), ["created", "moved", "secret"], "{text}");
}
