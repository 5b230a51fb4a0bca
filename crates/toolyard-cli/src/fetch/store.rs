//! Where fetched servers are kept.
//!
//! ```text
//!   CACHE/toolyard/mcp/KEY/record.json     what was fetched, and which directory holds it
//!                         /DIRECTORY/      node_modules or venv, never changed once it is recorded
//! ```
//!
//! The record is what counts: it is put in place at once, when its directory is complete. An environment of Python knows
//! its own path and cannot be moved, which is why the directory itself is not.

use super::wanted::Source;
use crate::cache;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    path::{Component, Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

/// The form of records. One of another form is as good as none.
const FORM: u32 = 1;

const RECORD: &str = "record.json";

/// The place of all that is fetched.
#[derive(Debug, Clone)]
pub(crate) struct Store(PathBuf);

/// What was fetched, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    form: u32,
    pub(super) source: Source,
    /// Beside the record.
    directory: PathBuf,
    /// In the directory.
    program: PathBuf,
    /// Of all packages, those that were asked for and what they need.
    pub(super) versions: BTreeMap<String, String>,
    pub(super) fetched_at_ms: u64,
}

/// What was fetched, and where it lies.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(super) record: Record,
    /// The directory with all of it.
    pub(crate) directory: PathBuf,
    /// Its program.
    pub(crate) program: PathBuf,
}

impl Store {
    /// The place in this user's cache.
    ///
    /// # Errors
    /// Why there is none for a workspace at `root`.
    pub(crate) fn of(root: &Path) -> Result<Self, String> {
        cache::directory(root, "mcp").map(Self).ok_or_else(|| {
            "there is no cache directory, or tools may write it: set XDG_CACHE_HOME to one that has nothing to do with \
             the workspace"
                .to_owned()
        })
    }

    /// The directory of all that is fetched.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the place, for this user alone.
    pub(crate) fn make(&self) -> io::Result<()> {
        private(&self.0)
    }

    /// What was fetched for this; `None` if nothing was, or no longer is there.
    pub(crate) fn find(&self, source: &Source) -> Option<Fetched> {
        let place = self.0.join(source.key());
        others_cannot_write(&place).ok()?;
        let record: Record = serde_json::from_slice(&fs::read(place.join(RECORD)).ok()?).ok()?;
        let is_inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let is_ours = record.form == FORM && record.source == *source;
        if !is_ours || !is_inside(&record.directory) || !is_inside(&record.program) {
            return None;
        }
        let directory = place.join(&record.directory);
        let program = directory.join(&record.program);
        program.is_file().then_some(Fetched { record, directory, program })
    }

    /// An empty directory for this, which is removed again unless it is recorded.
    pub(super) fn begin(&self, source: &Source) -> io::Result<Unrecorded> {
        self.make()?;
        let place = self.0.join(source.key());
        private(&place)?;
        let fetched_at_ms = now_ms();
        let name = PathBuf::from(format!("{fetched_at_ms}-{}", process::id()));
        let directory = place.join(&name);
        DirBuilder::new().create(&directory)?;
        Ok(Unrecorded { source: source.clone(), place, name, directory, fetched_at_ms, is_recorded: false })
    }
}

/// A directory that is being filled.
#[derive(Debug)]
pub(super) struct Unrecorded {
    source: Source,
    place: PathBuf,
    name: PathBuf,
    /// Where it is.
    pub(super) directory: PathBuf,
    fetched_at_ms: u64,
    is_recorded: bool,
}

impl Unrecorded {
    /// Puts it in the place of what was fetched before, which is removed.
    pub(super) fn record(
        mut self,
        program: PathBuf,
        versions: BTreeMap<String, String>,
        before: Option<Fetched>,
    ) -> io::Result<Fetched> {
        let record = Record {
            form: FORM,
            source: self.source.clone(),
            directory: self.name.clone(),
            program,
            versions,
            fetched_at_ms: self.fetched_at_ms,
        };
        let written = self.directory.with_extension("json");
        fs::write(&written, serde_json::to_vec_pretty(&record)?)?;
        fs::rename(&written, self.place.join(RECORD))?;
        self.is_recorded = true;
        if let Some(before) = before {
            // What cannot be removed is not used by anything any more.
            let _ = fs::remove_dir_all(before.directory);
        }
        let (directory, program) = (self.directory.clone(), self.directory.join(&record.program));
        Ok(Fetched { record, directory, program })
    }
}

impl Drop for Unrecorded {
    fn drop(&mut self) {
        if !self.is_recorded {
            let _ = fs::remove_dir_all(&self.directory);
            let _ = fs::remove_file(self.directory.with_extension("json"));
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Makes a directory, for this user alone.
fn private(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    others_cannot_write(directory)
}

/// Whoever else could write there would decide what runs here.
#[cfg(unix)]
fn others_cannot_write(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let about = fs::metadata(directory)?;
    if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0 {
        let why = format!("'{}' belongs to another user, or others may write it", directory.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

#[cfg(not(unix))]
fn others_cannot_write(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(package: &str) -> Source {
        Source::Npm { packages: vec![package.to_owned()], program: None }
    }

    fn filled(store: &Store, source: &Source, before: Option<Fetched>) -> Fetched {
        let begun = store.begin(source).unwrap();
        fs::write(begun.directory.join("run"), "").unwrap();
        begun.record("run".into(), BTreeMap::new(), before).unwrap()
    }

    /// SB-5: what is fetched is found from when it is recorded on, and not before.
    #[test]
    fn what_is_recorded_is_found() {
        let place = tempfile::tempdir().unwrap();
        let (store, source) = (Store(place.path().join("mcp")), source("a"));
        assert!(store.find(&source).is_none());
        let begun = store.begin(&source).unwrap();
        let unfinished = begun.directory.clone();
        assert!(unfinished.is_dir() && store.find(&source).is_none());
        drop(begun);
        assert!(!unfinished.exists(), "what is not finished is removed");
        let fetched = filled(&store, &source, None);
        assert_eq!(store.find(&source).unwrap().program, fetched.program);
        assert!(store.find(&super::tests::source("b")).is_none());
        fs::remove_file(&fetched.program).unwrap();
        assert!(store.find(&source).is_none(), "a program that is gone was not fetched");
    }

    /// SB-5: a record that leads elsewhere, or that others may have written, is none.
    #[cfg(unix)]
    #[test]
    fn a_record_that_is_not_ours_is_none() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let (store, source) = (Store(place.path().join("mcp")), source("a"));
        filled(&store, &source, None);
        let of_source = store.0.join(source.key());
        let file = of_source.join(RECORD);
        let good = fs::read_to_string(&file).unwrap();
        for program in ["/bin/sh", "../../run"] {
            fs::write(&file, good.replace("\"run\"", &format!("\"{program}\""))).unwrap();
            assert!(store.find(&source).is_none(), "{program}");
        }
        fs::write(&file, &good).unwrap();
        assert!(store.find(&source).is_some());
        fs::set_permissions(&of_source, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(store.find(&source).is_none());
    }
}
