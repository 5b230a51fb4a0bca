//! Opens a path for a sandbox: by handle, following no link.
//!
//! ```text
//!   a/b/c ──► a ──► b ──► c      each name is opened in the handle before it, and then looked at again:
//!                                if it is a link by now, or another directory, the path is one of a link
//! ```

use super::{
    Workspace,
    open::{kind_of, nonblocking},
    place::metadata_of,
};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use std::{
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};
use toolyard_core::Opened;

impl Workspace {
    /// What stands at a plain path.
    pub(super) fn opened(&self, path: &Path) -> io::Result<Opened> {
        let mut names = plain(path)?.into_iter();
        let mut at = self.dir().try_clone()?;
        while let Some(name) = names.next() {
            let found = match metadata_of(&at, &name)? {
                Some(found) if found.is_symlink() => return Ok(Opened::Link),
                Some(found) => found,
                None => {
                    let name: PathBuf = std::iter::once(name).chain(names).collect();
                    return Ok(Opened::Missing { nearest: at.into_std_file(), name });
                }
            };
            if !found.is_dir() {
                return match names.next() {
                    Some(_) => Err(io::ErrorKind::NotADirectory.into()),
                    None => open_file(&at, &name, &found),
                };
            }
            let below = at.open_dir(&name)?;
            if !is_still(&at, &name, &below.dir_metadata()?)? {
                return Ok(Opened::Link);
            }
            at = below;
        }
        Ok(Opened::Directory(at.into_std_file()))
    }
}

fn open_file(parent: &Dir, name: &OsString, found: &Metadata) -> io::Result<Opened> {
    require_file(found)?;
    let mut options = OpenOptions::new();
    nonblocking(options.read(true));
    let file: File = parent.open_with(name, &options)?;
    let metadata = file.metadata()?;
    require_file(&metadata)?;
    Ok(if is_still(parent, name, &metadata)? { Opened::File(file.into_std()) } else { Opened::Link })
}

fn require_file(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = format!("it is {}, neither a file nor a directory", kind_of(metadata.file_type()));
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Whether this name, not followed, is what was opened by it.
fn is_still(parent: &Dir, name: &OsString, opened: &Metadata) -> io::Result<bool> {
    let Some(now) = metadata_of(parent, name)? else { return Ok(false) };
    Ok(!now.is_symlink() && is_same(&now, opened))
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use cap_std::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Elsewhere files have no number that std would tell.
#[cfg(not(unix))]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.file_type() == other.file_type()
}

/// The names of a plain path.
fn plain(path: &Path) -> io::Result<Vec<OsString>> {
    let name = |component| match component {
        Component::Normal(name) => Some(Ok(name.to_owned())),
        Component::CurDir => None,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
            Some(Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain relative path")))
        }
    };
    path.components().filter_map(name).collect()
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};
    use toolyard_core::PathScope as _;

    struct Tree {
        dir: tempfile::TempDir,
        workspace: Workspace,
    }

    fn tree() -> Tree {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/file"), "text").unwrap();
        symlink("b", dir.path().join("a/link")).unwrap();
        symlink("nothing", dir.path().join("a/dangling")).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        Tree { dir, workspace }
    }

    fn shown(opened: io::Result<Opened>) -> String {
        match opened {
            Ok(Opened::Directory(_)) => "directory".to_owned(),
            Ok(Opened::File(file)) => io::read_to_string(file).unwrap(),
            Ok(Opened::Missing { name, .. }) => format!("missing {}", name.display()),
            Ok(Opened::Link) => "link".to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{:?}", error.kind()),
        }
    }

    /// SM-2: a path is opened as what it is, its nearest directory if it does not exist, and no link is followed.
    #[test]
    fn what_stands_there_is_opened_by_handle() {
        let tree = tree();
        for (path, expected) in [
            (".", "directory"),
            ("", "directory"),
            ("a/./b", "directory"),
            ("a/file", "text"),
            ("a/new", "missing new"),
            ("x/y/z", "missing x/y/z"),
            ("a/link", "link"),
            ("a/link/x", "link"),
            ("a/dangling", "link"),
            ("a/file/x", "NotADirectory"),
            ("a/../b", "InvalidInput"),
            ("/etc", "InvalidInput"),
        ] {
            assert_eq!(shown(tree.workspace.open(Path::new(path))), expected, "{path}");
        }
    }

    /// SM-2: pipes and sockets are not given away, and none is waited for.
    #[test]
    fn what_is_neither_file_nor_directory_is_refused() {
        let tree = tree();
        let _socket = std::os::unix::net::UnixListener::bind(tree.dir.path().join("socket")).unwrap();
        let error = tree.workspace.open(Path::new("socket")).unwrap_err();
        assert_eq!(error.to_string(), "it is a socket, neither a file nor a directory");
    }

    /// SM-2: a handle stays the directory that it was opened for.
    #[test]
    fn a_handle_outlives_its_name() {
        let tree = tree();
        let Ok(Opened::Missing { nearest, .. }) = tree.workspace.open(Path::new("a/b/new")) else {
            panic!("no missing name")
        };
        fs::rename(tree.dir.path().join("a"), tree.dir.path().join("moved")).unwrap();
        symlink("/etc", tree.dir.path().join("a")).unwrap();
        Dir::from_std_file(nearest).write("new", "here").unwrap();
        assert_eq!(fs::read_to_string(tree.dir.path().join("moved/b/new")).unwrap(), "here");
    }

    /// SM-2: a name that has become another one's while it was opened is that of a link.
    #[test]
    fn a_name_that_was_swapped_is_found() {
        let tree = tree();
        let a = tree.workspace.dir().open_dir("a").unwrap();
        let opened = a.open_dir("link").unwrap().dir_metadata().unwrap();
        assert!(is_still(&a, &"b".into(), &opened).unwrap());
        assert!(!is_still(&a, &"link".into(), &opened).unwrap());
        assert!(!is_still(&a, &"file".into(), &opened).unwrap());
        assert!(!is_still(&a, &"gone".into(), &opened).unwrap());
    }
}
