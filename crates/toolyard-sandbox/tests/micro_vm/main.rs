//! Tools that run in real virtual machines, through an engine. Where QEMU, a kernel or the agent are missing, all are
//! skipped with a line.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[path = "../../../toolyard-vm/tests/programs/found.rs"]
mod found;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod yard;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    toolyard_process::help_if_asked();
    let Some(parts) = found::parts() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let yard = yard::Yard::new(parts);
        tests::a_program_is_called_by_the_contract(&yard).await;
        tests::what_it_writes_where_it_may_is_written_back(&yard).await;
        tests::a_file_that_changed_meanwhile_is_left_alone(&yard).await;
        tests::what_governs_is_not_written(&yard).await;
        tests::a_reader_writes_nothing(&yard).await;
        tests::what_cannot_be_kept_is_refused(&yard).await;
        tests::a_call_that_is_cancelled_has_changed_nothing(&yard).await;
    });
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::yard::{Yard, limited};
    use std::{fs, time::Duration};
    use toolyard::{ErrorKind, ToolSpec};

    fn told(name: &str) {
        println!("test {name} ... ok");
    }

    /// SB-2: the document, the variables, the directory, and the result.
    pub(super) async fn a_program_is_called_by_the_contract(yard: &Yard) {
        let place = yard.place(&[]);
        let script = "cat; echo \" $TOOLYARD_TOOL $HOME $PWD\"; uname -n";
        let outcome = yard.call(&place, ToolSpec::read("t"), script, limited(|_| {})).await;
        let root = place.path().canonicalize().unwrap();
        assert_eq!(outcome.to_text(), format!("{{}} t /tmp {}\n(none)\n", root.display()));
        assert_eq!(outcome.sandbox.as_str(), "micro_vm");
        told("a_program_is_called_by_the_contract");
    }

    /// SB-1, SM-2: files go in as copies, and what was changed comes back: contents, new directories, removals.
    pub(super) async fn what_it_writes_where_it_may_is_written_back(yard: &Yard) {
        let place = yard.place(&[("a", "1\n"), ("b", "2\n"), ("d/c", "3\n")]);
        let script =
            "cat a b d/c; echo more >> a; rm b; rm -r d; mkdir -p new/empty; echo x > new/x; ln -s a link";
        let outcome = yard.call(&place, ToolSpec::write("t"), script, limited(|_| {})).await;
        assert_eq!(outcome.to_text(), "1\n2\n3\n");
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_eq!((read("a"), read("new/x")), ("1\nmore\n".to_owned(), "x\n".to_owned()));
        assert!(place.path().join("new/empty").is_dir());
        for gone in ["b", "d", "link"] {
            assert!(place.path().join(gone).symlink_metadata().is_err(), "{gone}");
        }
        told("what_it_writes_where_it_may_is_written_back");
    }

    /// A file that has changed in the workspace meanwhile is not overwritten and not deleted, and the call says which.
    pub(super) async fn a_file_that_changed_meanwhile_is_left_alone(yard: &Yard) {
        let place = yard.place(&[("mine", "old"), ("gone", "old"), ("fine", "old")]);
        let script = "sleep 1; echo new > mine; rm gone; echo new > made; echo new > fine";
        let root = place.path().to_owned();
        let change = move || {
            ["mine", "gone", "made"].iter().for_each(|name| fs::write(root.join(name), "other").unwrap())
        };
        let outcome = yard.call_and(&place, ToolSpec::write("t"), script, limited(|_| {}), change).await;
        let error = outcome.error().unwrap();
        assert_eq!(error.kind, ErrorKind::ExecutionError);
        for name in ["mine", "gone", "made"] {
            assert!(
                error.message.contains(&format!("{name}' (it has changed meanwhile)")),
                "{}",
                error.message
            );
            assert_eq!(fs::read_to_string(place.path().join(name)).unwrap(), "other");
        }
        assert_eq!(error.effect, toolyard::Effect::Unknown);
        assert_eq!(fs::read_to_string(place.path().join("fine")).unwrap(), "new\n");
        told("a_file_that_changed_meanwhile_is_left_alone");
    }

    /// SB-11: what governs is not written, nor what git runs.
    pub(super) async fn what_governs_is_not_written(yard: &Yard) {
        let place = yard.place(&[("toolyard.toml", "old"), (".git/config", "old")]);
        let script =
            "echo new > toolyard.toml; echo new > .git/config; mkdir .git/hooks; echo new > .git/hooks/x";
        let outcome = yard.call(&place, ToolSpec::write("t"), script, limited(|_| {})).await;
        let message = &outcome.error().unwrap().message;
        assert_eq!(message.matches("no program writes it").count(), 4, "{message}");
        for name in ["toolyard.toml", ".git/config"] {
            assert_eq!(fs::read_to_string(place.path().join(name)).unwrap(), "old");
        }
        assert!(!place.path().join(".git/hooks").exists());
        told("what_governs_is_not_written");
    }

    /// SM-2: where reading is granted nothing comes back.
    pub(super) async fn a_reader_writes_nothing(yard: &Yard) {
        let place = yard.place(&[("a", "old")]);
        let outcome = yard.call(&place, ToolSpec::read("t"), "echo new > a; cat a", limited(|_| {})).await;
        assert_eq!(outcome.to_text(), "new\n");
        assert_eq!(fs::read_to_string(place.path().join("a")).unwrap(), "old");
        told("a_reader_writes_nothing");
    }

    /// SB-4: a limit that no machine keeps is refused by name, and files that are too many are no call.
    pub(super) async fn what_cannot_be_kept_is_refused(yard: &Yard) {
        let place = yard.place(&[("a", "123456789")]);
        let limits = limited(|limits| limits.open_files = Some(8));
        let outcome = yard.call(&place, ToolSpec::read("t"), "true", limits).await;
        assert!(
            outcome.error().unwrap().message.contains("'micro_vm' cannot limit open files"),
            "{outcome:?}"
        );
        let limits = limited(|limits| limits.memory = Some(128 << 20));
        let outcome = yard
            .call(&place, ToolSpec::read("t"), "free | awk '/Mem/ { print ($2 < 131072) }'", limits)
            .await;
        assert_eq!(outcome.to_text(), "1\n");
        fs::write(place.path().join("large"), vec![0; super::yard::FILES_MAX as usize]).unwrap();
        let outcome = yard.call(&place, ToolSpec::read("t"), "true", limited(|_| {})).await;
        let error = outcome.error().unwrap();
        assert_eq!(error.kind, ErrorKind::SandboxError);
        assert!(error.message.contains("grant less, or set files_max"), "{}", error.message);
        told("what_cannot_be_kept_is_refused");
    }

    /// SB-7: a call that runs into its time has its output so far, and what it wrote in its machine is gone with that.
    pub(super) async fn a_call_that_is_cancelled_has_changed_nothing(yard: &Yard) {
        let place = yard.place(&[("a", "old")]);
        let limits = limited(|limits| limits.wall_time = Some(Duration::from_secs(4)));
        let outcome =
            yard.call(&place, ToolSpec::write("t"), "echo so far; echo new > a; sleep 1000", limits).await;
        assert_eq!(outcome.error().unwrap().kind, ErrorKind::Timeout, "{outcome:?}");
        assert_eq!(fs::read_to_string(place.path().join("a")).unwrap(), "old");
        yard.until_empty().await;
        told("a_call_that_is_cancelled_has_changed_nothing");
    }
}
