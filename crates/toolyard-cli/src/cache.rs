//! Where what was made or downloaded once is kept for the next time.

use std::{
    env,
    path::{Path, PathBuf},
};

/// A directory of this name in this user's cache; none if there is no such cache, or if tools of a workspace at `root`
/// may write there: what lies in it is run as it is found (SB-11).
pub(crate) fn directory(root: &Path, name: &str) -> Option<PathBuf> {
    let of_user = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = match cfg!(windows) {
        true => of_user("LOCALAPPDATA")?,
        false => of_user("XDG_CACHE_HOME").or_else(|| Some(of_user("HOME")?.join(".cache")))?,
    };
    let (root, place) = (root.canonicalize().ok()?, cache.canonicalize().unwrap_or_else(|_| cache.clone()));
    // A workspace within it could come to hold the directory too.
    let is_apart = !place.starts_with(&root) && !root.starts_with(&place);
    is_apart.then(|| cache.join("toolyard").join(name))
}
