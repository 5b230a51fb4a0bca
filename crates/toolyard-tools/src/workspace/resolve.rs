//! Resolves a path to the file that it leads to.

use super::Workspace;
use std::{
    collections::VecDeque,
    ffi::OsString,
    path::{Component, Path, PathBuf},
};
use toolyard_core::PathEscape;

/// The most links that are followed, as many as Linux follows.
const LINKS_MAX: usize = 40;

/// One remaining step of a path.
enum Step {
    Up,
    Into(OsString),
}

impl Workspace {
    /// Resolves `path` relative to the root, following links and eliminating `..`. After the first name that does not
    /// exist, the rest is resolved by its text alone.
    pub(super) fn resolved(&self, path: &str) -> Result<PathBuf, PathEscape> {
        let escape = || PathEscape::new(path);
        let mut rest = steps(&self.relative(path)?).ok_or_else(escape)?;
        let mut resolved = PathBuf::new();
        let mut links = 0;
        while let Some(step) = rest.pop_front() {
            let name = match step {
                Step::Into(name) => name,
                Step::Up if resolved.pop() => continue,
                Step::Up => return Err(escape()),
            };
            resolved.push(name);
            let Some(target) = self.link(&resolved) else { continue };
            links += 1;
            if links > LINKS_MAX {
                return Err(escape());
            }
            resolved.pop();
            let mut through = steps(&target).ok_or_else(escape)?;
            through.append(&mut rest);
            rest = through;
        }
        Ok(resolved)
    }

    /// The target of the link at `path`, if there is one.
    fn link(&self, path: &Path) -> Option<PathBuf> {
        let metadata = self.dir().symlink_metadata(path).ok()?;
        // Reading the contents also works for a link with an absolute target, which cannot be followed.
        metadata.is_symlink().then(|| self.dir().read_link_contents(path).ok()).flatten()
    }
}

/// The steps of a relative path; `None` for an absolute one.
fn steps(path: &Path) -> Option<VecDeque<Step>> {
    let step = |component| match component {
        Component::Normal(name) => Some(Some(Step::Into(name.to_owned()))),
        Component::ParentDir => Some(Some(Step::Up)),
        Component::CurDir => Some(None),
        Component::RootDir | Component::Prefix(_) => None,
    };
    let steps: Option<Vec<_>> = path.components().map(step).collect();
    Some(steps?.into_iter().flatten().collect())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use toolyard_core::PathScope;

    /// PO-1b: grants are compared with the file that a path leads to.
    #[test]
    fn links_are_followed() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(root.join("secret")).unwrap();
        symlink("../secret", root.join("a/in")).unwrap();
        symlink("new/file", root.join("a/dangling")).unwrap();
        symlink("/etc", root.join("a/out")).unwrap();
        symlink("../../..", root.join("a/up")).unwrap();
        symlink("loop", root.join("a/loop")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let resolved = |path: &str| workspace.resolve(path).map(|path| path.to_string_lossy().into_owned());
        for (path, leads_to) in [
            ("a/b/c", "a/b/c"),
            (".", ""),
            ("a/in/key", "secret/key"),
            ("a/in/../x", "x"),
            ("a/b/../in", "secret"),
            ("a/dangling", "a/new/file"),
            ("a/none/../../x", "x"),
            (root.join("a/in").to_str().unwrap(), "secret"),
        ] {
            assert_eq!(resolved(path).as_deref(), Ok(leads_to), "{path}");
        }
        for path in ["../x", "a/out", "a/out/passwd", "a/up", "a/up/x", "a/loop", "/etc/passwd"] {
            assert_eq!(resolved(path), Err(PathEscape::new(path)), "{path}");
        }
    }
}
