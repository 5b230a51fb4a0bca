//! What a program changed of what it was sent, as it is told to the host.

use crate::{
    files::{Sent, Stamp},
    port::Sender,
};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};
use toolyard_vm::protocol::{Bytes, FileHead, FromGuest, PIECE_BYTES};

/// Tells of all changes at these places and below them: regular files and directories, and nothing else.
pub(crate) fn tell(places: &[PathBuf], sent: &BTreeMap<PathBuf, Sent>, to: &Sender) -> io::Result<()> {
    for (path, was) in sent.iter().filter(|(path, _)| places.iter().any(|place| path.starts_with(place))) {
        let is_there = path.symlink_metadata().is_ok_and(|about| match was {
            Sent::Directory => about.is_dir(),
            Sent::File(_) => about.is_file(),
        });
        if !is_there {
            to.send(&FromGuest::Removed(name(path)))?;
        }
    }
    places.iter().try_for_each(|place| tell_of(place, sent, to))
}

fn tell_of(path: &Path, sent: &BTreeMap<PathBuf, Sent>, to: &Sender) -> io::Result<()> {
    let Ok(about) = path.symlink_metadata() else { return Ok(()) };
    if about.is_dir() {
        if sent.get(path) != Some(&Sent::Directory) {
            to.send(&FromGuest::Directory(name(path)))?;
        }
        let mut below: Vec<PathBuf> =
            fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        below.sort();
        return below.iter().try_for_each(|path| tell_of(path, sent, to));
    }
    if about.is_file() && sent.get(path) != Some(&Sent::File(Stamp::of(&about))) {
        let is_executable = about.permissions().mode() & 0o100 != 0;
        to.send(&FromGuest::File(FileHead { path: name(path), is_executable }))?;
        tell_content(path, to)?;
    }
    Ok(())
}

fn tell_content(path: &Path, to: &Sender) -> io::Result<()> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            length => to.send(&FromGuest::Content(Bytes::from(&piece[..length])))?,
        }
    }
}

fn name(path: &Path) -> Bytes {
    Bytes::from(path.as_os_str().as_bytes())
}
