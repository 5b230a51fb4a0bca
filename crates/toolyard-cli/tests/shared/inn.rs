//! An MCP server in a few lines of shell: an inn that refuses every booking and logs to standard error, and that has a
//! bell and an echo.

use super::place::dir;
use std::{fs, path::PathBuf};

/// The description of `book` is in the file `says`; a loud ring makes clients list the tools again.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  reads='"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}'
  came='"result":{"content":[{"type":"text","text":"somebody comes"}]}'
  case $line in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"n","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"book","description":"'"$(cat says)"'",'"$reads"'},{"name":"ring",'"$reads"'},{"name":"echo",'"$reads"'}]}' ;;
    *'"tools/call"'*'"loud"'*) say "$came"; echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}' ;;
    *'"tools/call"'*'"ring"'*) say "$came" ;;
    *'"tools/call"'*)
      echo 'all rooms are taken, says postgres://ada:swordfish@db' >&2
      say '"result":{"content":[{"type":"text","text":"no such room"},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}],"structuredContent":{"free":["17"]},"isError":true}' ;;
    *'"id"'*) say '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// The server, in its own directory.
pub(crate) struct Inn {
    dir: PathBuf,
    more: String,
}

impl Inn {
    /// A server with these additional lines in its section of the configuration.
    pub(crate) fn open(name: &str, more: &str) -> Self {
        let inn = Self { dir: dir(name), more: more.to_owned() };
        fs::write(inn.path("inn.sh"), SERVER).unwrap();
        fs::write(inn.path("toolyard.toml"), inn.section()).unwrap();
        inn.says("books a room");
        inn
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Changes the description of `book`.
    pub(crate) fn says(&self, of_booking: &str) {
        fs::write(self.path("says"), of_booking).unwrap();
    }

    /// The server's section of a configuration.
    pub(crate) fn section(&self) -> String {
        let (script, more) = (self.path("inn.sh"), &self.more);
        format!(
            "[mcp.inn]\ncommand = \"sh\"\nargs = [{script:?}]\ncwd = {:?}\ntrust = true\n{more}\n",
            self.dir
        )
    }

    /// A configuration with this section alone.
    pub(crate) fn config(&self) -> String {
        self.path("toolyard.toml").to_str().unwrap().to_owned()
    }
}
