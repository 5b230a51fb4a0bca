//! KT-15: completions and manual pages, made of the definition of the command line.

use crate::{child::toolyard, place::dir};
use std::fs;

/// KT-15: each shell gets the commands and the options.
#[test]
fn shells_complete_commands_and_options() {
    for (shell, options) in [("bash", "--approve"), ("zsh", "--approve"), ("fish", "-l approve")] {
        let done = toolyard(&["completions", shell], "");
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["episodes", "supervise", "completions", "init", "older-than", options] {
            assert!(done.stdout.contains(word), "{shell}: {word}");
        }
    }
    let done = toolyard(&["completions", "tcsh"], "");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("bash, zsh, fish"), "{}", done.stderr);
}

/// KT-15: the script is one that bash can read, and it completes a command.
#[cfg(unix)]
#[test]
fn bash_completes_a_command() {
    use std::process::{Command, Stdio};
    let script = dir("completions").join("toolyard.bash");
    fs::write(&script, toolyard(&["completions", "bash"], "").stdout).unwrap();
    let text = format!(
        "source {}; COMP_WORDS=(toolyard sup); COMP_CWORD=1; _toolyard toolyard sup toolyard; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let bash = Command::new("bash").args(["-c", &text]).stdin(Stdio::null()).output();
    let Ok(bash) = bash else { return crate::shared::missing::skip("no bash") };
    assert_eq!(String::from_utf8_lossy(&bash.stdout).trim(), "supervise", "{bash:?}");
}

/// KT-15: one page on standard output, or one for each command in a directory.
#[test]
fn the_manual_has_a_page_for_each_command() {
    let page = toolyard(&["man"], "");
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(page.stdout.contains(".TH toolyard 1") && page.stdout.contains("supervise"), "{}", page.stdout);
    let place = dir("man").join("man1");
    let done = toolyard(&["man", place.to_str().unwrap()], "");
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    let run = fs::read_to_string(place.join("toolyard-run.1")).unwrap();
    assert!(run.contains("\\-\\-max\\-in\\-flight") && run.contains("Exit codes"), "{run}");
    for name in ["toolyard", "toolyard-init", "toolyard-serve", "toolyard-token-new", "toolyard-journal-ls"] {
        assert!(place.join(format!("{name}.1")).exists(), "{name}");
    }
    let file = place.join("toolyard.1");
    let done = toolyard(&["man", file.to_str().unwrap()], "");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.starts_with("toolyard: cannot write "), "{}", done.stderr);
}
