//! The errors of the workspace.

use crate::one_line::OneLine;
use crate::workspace::Nearby;
use std::{error::Error, fmt, io, path::PathBuf};
use toolyard_core::{PathEscape, ToolErrorKind, error::ForModel};

/// Paths longer than this many characters are cut in messages, except in the fixed wording of an escape.
const SHOWN_CHARS_MAX: usize = 200;

/// Why an operation of a [`Workspace`](crate::Workspace) failed.
///
/// The messages are written for the model and name no path outside the workspace. In a handler `?` turns an error
/// into a [`ToolError`](toolyard_core::ToolError): [`Escape`](Self::Escape) and [`Guarded`](Self::Guarded) become
/// `permission_denied`,
/// [`Root`](Self::Root), which may name a path of the machine, becomes unclassified, and all others become
/// `execution_error` with their message.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The path leaves the workspace, by its name or through a symbolic link (PO-2).
    Escape(PathEscape),
    /// Nothing exists under this name.
    NotFound {
        /// The path as it was asked for.
        path: String,
        /// The contents of the nearest directory that does exist.
        listing: Option<Nearby>,
    },
    /// The file is not text in UTF-8.
    NotUtf8 {
        /// The path as it was asked for.
        path: String,
        /// The first byte that is not text, from 0.
        position: usize,
    },
    /// The file, or the content to be written, is larger than the bound.
    TooLarge {
        /// The path as it was asked for.
        path: String,
        /// Its bytes, as far as they are known.
        size: u64,
        /// The bound.
        size_max: u64,
    },
    /// The path is a directory or a special file (a pipe, a device, a socket), and a file is needed.
    NotAFile {
        /// The path as it was asked for.
        path: String,
        /// What it is instead.
        is: &'static str,
    },
    /// The path is a file, or goes through one, where a directory is needed.
    NotADirectory {
        /// The path as it was asked for.
        path: String,
    },
    /// The directory to delete is not empty.
    NotEmpty {
        /// The path as it was asked for.
        path: String,
    },
    /// The file is marked read-only.
    ReadOnly {
        /// The path as it was asked for.
        path: String,
    },
    /// The text to replace does not occur exactly once.
    Occurs {
        /// The path as it was asked for.
        path: String,
        /// How often it occurs.
        times: usize,
    },
    /// The file governs what tools may do, and is not written by them; see [`guard`](crate::Workspace::guard) (SB-11).
    Guarded {
        /// The path as it was asked for.
        path: String,
    },
    /// No file can have this name, or the operation makes no sense for it.
    BadPath {
        /// The path as it was asked for.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The operating system reports an error.
    Io {
        /// The path as it was asked for.
        path: String,
        /// The error it reported.
        error: io::Error,
    },
    /// The workspace itself could not be opened.
    Root(RootError),
}

impl fmt::Display for WorkspaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escape(escape) => escape.fmt(f),
            Self::NotFound { path, listing } => {
                write!(f, "no such file '{}'", Shown(path))?;
                listing.as_ref().map_or(Ok(()), |nearby| write!(f, "; {nearby}"))
            }
            Self::NotUtf8 { path, position } => {
                write!(f, "'{}' is not UTF-8 text: invalid byte at {position}", Shown(path))
            }
            Self::TooLarge { path, size, size_max } => {
                write!(f, "'{}' is too large: {size} bytes, at most {size_max}", Shown(path))
            }
            Self::NotAFile { path, is } => write!(f, "'{}' is {is}, not a file", Shown(path)),
            Self::NotADirectory { path } => {
                write!(f, "'{}' is not a directory, or goes through a file", Shown(path))
            }
            Self::NotEmpty { path } => write!(f, "the directory '{}' is not empty", Shown(path)),
            Self::ReadOnly { path } => write!(f, "'{}' is read-only", Shown(path)),
            Self::Occurs { path, times: 0 } => {
                write!(f, "the text to replace does not occur in '{}'", Shown(path))
            }
            Self::Occurs { path, times } => {
                let path = Shown(path);
                write!(
                    f,
                    "the text to replace occurs {times} times in '{path}': include more context so that it occurs once"
                )
            }
            Self::Guarded { path } => {
                write!(f, "'{}' governs what tools may do, and is not written by them", Shown(path))
            }
            Self::BadPath { path, why } => write!(f, "bad path '{}': {why}", Shown(path)),
            Self::Io { path, error } => write!(f, "'{}': {error}", Shown(path)),
            Self::Root(error) => error.fmt(f),
        }
    }
}

impl Error for WorkspaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Escape(escape) => Some(escape),
            Self::Root(error) => error.source(),
            Self::Guarded { .. } => Some(&ForModel(ToolErrorKind::PermissionDenied)),
            Self::NotFound { .. }
            | Self::NotUtf8 { .. }
            | Self::TooLarge { .. }
            | Self::NotAFile { .. }
            | Self::NotADirectory { .. }
            | Self::NotEmpty { .. }
            | Self::ReadOnly { .. }
            | Self::Occurs { .. }
            | Self::BadPath { .. }
            // The message has the cause. The source is a mark by which `?` in a handler keeps the message.
            | Self::Io { .. } => Some(&ForModel(ToolErrorKind::Execution)),
        }
    }
}

/// Why a directory cannot be a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RootError {
    /// The root begins with `~` and the home directory is unknown.
    #[error("the workspace root '{0}' begins with '~', but the home directory is unknown")]
    NoHome(PathBuf),
    /// The root cannot be opened as a directory.
    #[error("cannot open the workspace root '{root}'")]
    Open {
        /// The root, as it was given.
        root: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A path as messages show it, on one line and shortened: the model wrote it, so it may be a megabyte long.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => write!(f, "{}…", OneLine(&self.0[..end])),
            None => OneLine(self.0).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard_core::ToolError;

    #[test]
    fn an_escape_becomes_permission_denied_in_the_fixed_wording() {
        let error = ToolError::from(WorkspaceError::Escape(PathEscape::new("../x")));
        assert_eq!(error.kind(), ToolErrorKind::PermissionDenied);
        assert_eq!(error.message(), "Path '../x' escapes workspace boundary");
    }

    #[test]
    fn other_errors_keep_their_text_for_the_model() {
        let path = "a".to_owned();
        let error = ToolError::from(WorkspaceError::Occurs { path, times: 3 });
        assert_eq!(error.kind(), ToolErrorKind::Execution);
        assert_eq!(
            error.message(),
            "the text to replace occurs 3 times in 'a': include more context so that it occurs once"
        );
    }

    #[test]
    fn the_root_of_the_machine_stays_out_of_the_models_sight() {
        let error = ToolError::from(WorkspaceError::Root(RootError::NoHome("~/secret".into())));
        assert_eq!(error.kind(), ToolErrorKind::Unclassified);
        assert!(!error.message().contains("secret"));
    }

    #[test]
    fn a_long_path_is_cut_in_messages() {
        let path = "ü".repeat(100_000);
        let text = WorkspaceError::ReadOnly { path }.to_string();
        assert_eq!(text.chars().count(), SHOWN_CHARS_MAX + "''… is read-only".chars().count());
    }
}
