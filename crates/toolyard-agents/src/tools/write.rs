//! `Write`: makes or replaces a file of the host.

use super::files::{HostFiles, Place, denied, is_link};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, statat, unlinkat};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use toolyard::{FsMode, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// Makes the names of temporary files differ.
static NUMBER: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
pub(super) struct Write {
    files: HostFiles,
}

impl Write {
    pub(super) fn new(files: &HostFiles) -> Self {
        Self { files: files.clone() }
    }
}

impl ToolFactory for Write {
    fn spec(&self) -> ToolSpec {
        ToolSpec::write("Write")
            .describe(
                "Writes a text file whole: makes it, or replaces what it has. Its directory must exist. Returns its size in \
                 bytes.",
            )
            .input_schema(json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, as an absolute path"},
                    "content": {"type": "string"},
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            }))
            .requires_fs(FsMode::ReadWrite, "path")
            .blocking()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Write {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if cx.is_cancelled() {
            return Err(ToolError::cancelled("cancelled before it started").no_side_effect());
        }
        let (path, content) =
            (args["path"].as_str().unwrap_or_default(), args["content"].as_str().unwrap_or_default());
        let agent = (cx.session().clone(), cx.agent().clone());
        let place = self.files.place(&agent, FsMode::ReadWrite, path)?;
        replace(&place, content.as_bytes()).map_err(|error| match is_link(&error) {
            true => denied(FsMode::ReadWrite, path),
            false => ToolError::execution(format!("'{path}' cannot be written: {error}")),
        })?;
        let output = ToolOutput::json(json!({"size": content.len()}));
        Ok(output.with_file_modified(place.at.to_string_lossy()))
    }
}

/// Writes a file beside it, and gives that its name once it is whole and on the disk.
fn replace(place: &Place, content: &[u8]) -> io::Result<()> {
    let directory = place.directory.as_fd();
    let mode = match statat(directory, place.name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => match rustix::fs::FileType::from_raw_mode(there.st_mode) {
            rustix::fs::FileType::RegularFile => Mode::from_raw_mode(there.st_mode & 0o777),
            rustix::fs::FileType::Symlink => return Err(rustix::io::Errno::LOOP.into()),
            _ => return Err(io::Error::other("it is no file")),
        },
        Err(rustix::io::Errno::NOENT) => Mode::from_raw_mode(0o666),
        Err(error) => return Err(error.into()),
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = format!(".toolyard-{}-{number}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, temporary.as_str(), flags, mode)?);
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(directory, temporary.as_str(), directory, place.name())?));
    if written.is_err() {
        let _ = unlinkat(directory, temporary.as_str(), AtFlags::empty()); // it may not be there
    }
    written
}
