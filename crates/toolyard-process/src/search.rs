//! Finds a program that is named without a place, as a shell does.
//!
//! The standard library would search too; but then it forks by itself, with a socket that a confined program may not
//! make.

use std::{
    env,
    ffi::OsStr,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Where is searched without a `PATH`, as the C library does.
const DEFAULT: &str = "/bin:/usr/bin";

/// The place of a program of this name in `path`; a name with a slash is a place already.
///
/// # Errors
/// [`NotFound`](io::ErrorKind::NotFound) when there is none.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let directories = env::split_paths(path.unwrap_or(OsStr::new(DEFAULT)));
    let found = directories.map(|directory| directory.join(name)).find(|place| is_program(place));
    found.ok_or_else(|| rustix::io::Errno::NOENT.into())
}

/// Whether this is a file that may be executed.
pub(crate) fn is_program(place: &Path) -> bool {
    place.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_is_searched_in_order_and_a_place_is_not() {
        let place = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| place.path().join(name));
        for directory in [&first, &second] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("a"), "").unwrap();
        }
        let path = env::join_paths([&first, &second]).unwrap();
        let found = |name: &str| find(OsStr::new(name), Some(&path));
        assert_eq!(found("a").unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::set_permissions(second.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found("a").unwrap(), second.join("a"));
        fs::set_permissions(first.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found("a").unwrap(), first.join("a"));
        assert_eq!(found("./a").unwrap(), Path::new("./a"));
        assert_eq!(found("first").unwrap_err().kind(), io::ErrorKind::NotFound, "a directory is no program");
        assert_eq!(find(OsStr::new("sh"), None).unwrap(), Path::new("/bin/sh"));
    }
}
