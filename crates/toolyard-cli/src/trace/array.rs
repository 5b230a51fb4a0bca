//! A file with a JSON array that grows and is whole after every write: whatever ends the program, the file can be read.

use serde_json::Value;
use std::{
    fs::File,
    io::{self, Seek, SeekFrom, Write},
};

const END: &[u8] = b"\n]\n";

/// The array. What is pushed is written when it is saved.
#[derive(Debug)]
pub(super) struct JsonArray {
    file: File,
    /// What has not been written yet.
    unsaved: Vec<u8>,
    is_empty: bool,
    /// Whether the end can be written over. Of a pipe or a device it is written once.
    is_regular: bool,
}

impl JsonArray {
    /// Writes an empty array, in place of what the file held.
    pub(super) fn begin(mut file: File) -> io::Result<Self> {
        let is_regular = file.metadata()?.is_file();
        file.write_all(b"[")?;
        if is_regular {
            file.write_all(END)?;
            file.set_len(1 + END.len() as u64)?;
        }
        Ok(Self { file, unsaved: Vec::new(), is_empty: true, is_regular })
    }

    /// Adds items.
    pub(super) fn push(&mut self, items: Vec<Value>) {
        for item in items {
            let before: &[u8] = if self.is_empty { b"\n" } else { b",\n" };
            self.is_empty = false;
            self.unsaved.extend_from_slice(before);
            self.unsaved.extend_from_slice(item.to_string().as_bytes());
        }
    }

    /// Writes what is new, and the end behind it in the same write.
    pub(super) fn save(&mut self) -> io::Result<()> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        if self.is_regular {
            self.file.seek(SeekFrom::End(-(END.len() as i64)))?;
            self.unsaved.extend_from_slice(END);
        }
        self.file.write_all(&self.unsaved)?;
        self.unsaved.clear();
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.save()?;
        if !self.is_regular {
            self.file.write_all(END)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    /// After every save, and before the first, the file is a JSON document.
    #[test]
    fn the_file_is_whole_at_any_time() {
        let path = std::env::temp_dir().join(format!("toolyard-array-{}.json", std::process::id()));
        fs::write(&path, "what was there before, and is longer").unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let read = || serde_json::from_str::<Value>(&fs::read_to_string(&path).unwrap()).unwrap();
        let mut array = JsonArray::begin(file).unwrap();
        assert_eq!(read(), json!([]));
        array.push(vec![json!(1), json!({"a": "b"})]);
        assert_eq!(read(), json!([]));
        array.save().unwrap();
        assert_eq!(read(), json!([1, {"a": "b"}]));
        array.push(vec![json!(2)]);
        array.end().unwrap();
        assert_eq!(read(), json!([1, {"a": "b"}, 2]));
        fs::remove_file(&path).unwrap();
    }
}
