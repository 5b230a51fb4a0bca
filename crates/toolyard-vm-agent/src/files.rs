//! The files of a call, as they were sent.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};
use toolyard_vm::protocol::{Bytes, FileHead};

/// What was sent.
#[derive(Default)]
pub(crate) struct Files {
    sent: BTreeMap<PathBuf, Sent>,
    last: Option<(PathBuf, File)>,
}

/// What was sent under one name.
#[derive(PartialEq, Eq)]
pub(crate) enum Sent {
    Directory,
    File(Stamp),
}

/// What tells that a file was changed.
#[derive(PartialEq, Eq)]
pub(crate) struct Stamp {
    number: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(about: &Metadata) -> Self {
        Self { number: about.ino(), size: about.size(), changed: (about.ctime(), about.ctime_nsec()) }
    }
}

/// A path as it was sent.
pub(crate) fn path(bytes: &Bytes) -> &Path {
    Path::new(OsStr::from_bytes(&bytes.0))
}

impl Files {
    /// Makes a directory, with those above it.
    pub(crate) fn directory(&mut self, path: &Path) -> io::Result<()> {
        self.close()?;
        fs::create_dir_all(path)?;
        let all = path.ancestors().map(|path| (path.to_owned(), Sent::Directory));
        self.sent.extend(all);
        Ok(())
    }

    /// Makes a file, with the directories above it.
    pub(crate) fn file(&mut self, head: &FileHead) -> io::Result<()> {
        let path = path(&head.path);
        self.directory(path.parent().unwrap_or(path))?;
        let mode = if head.is_executable { 0o700 } else { 0o600 };
        let file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
        self.last = Some((path.to_owned(), file));
        Ok(())
    }

    /// Adds to the file that was made last.
    pub(crate) fn content(&mut self, content: &[u8]) -> io::Result<()> {
        match &mut self.last {
            Some((_, file)) => file.write_all(content),
            None => Err(io::Error::other("a content without a file")),
        }
    }

    /// All that was sent, once nothing more comes.
    pub(crate) fn into_sent(mut self) -> io::Result<BTreeMap<PathBuf, Sent>> {
        self.close()?;
        Ok(self.sent)
    }

    fn close(&mut self) -> io::Result<()> {
        if let Some((path, file)) = self.last.take() {
            self.sent.insert(path, Sent::File(Stamp::of(&file.metadata()?)));
        }
        Ok(())
    }
}
