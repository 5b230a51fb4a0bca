//! Archives of the form `newc`, which the kernel unpacks as its first file system.

const MAGIC: &str = "070701";
const END: &str = "TRAILER!!!";

/// Types of entries, as the kernel's modes have them.
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// An archive that is being written.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Adds a directory. Names have no slash in front.
    pub(crate) fn directory(&mut self, name: &[u8]) {
        self.entry(name, DIRECTORY | 0o755, &[]);
    }

    /// Adds a file.
    pub(crate) fn file(&mut self, name: &[u8], mode: u32, content: &[u8]) {
        self.entry(name, FILE | mode & 0o777, content);
    }

    /// Adds a symbolic link.
    pub(crate) fn link(&mut self, name: &[u8], target: &[u8]) {
        self.entry(name, LINK | 0o777, target);
    }

    /// The archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry(END.as_bytes(), 0, &[]);
        self.bytes
    }

    /// Everything belongs to root, and nothing has a time: equal contents make equal archives.
    fn entry(&mut self, name: &[u8], mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        let (links, zero) = (1, 0);
        // Number, mode, owner, group, links, time, size, two pairs of device numbers, the name's size, a sum.
        let fields =
            [self.entries, mode, zero, zero, links, zero, size, zero, zero, zero, zero, name_size, zero];
        self.bytes.extend(MAGIC.bytes());
        fields.iter().for_each(|field| self.bytes.extend(format!("{field:08x}").bytes()));
        self.bytes.extend(name);
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Names and contents end at a multiple of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_form_that_the_kernel_reads() {
        let mut archive = Archive::default();
        archive.file(b"init", 0o755, b"agent");
        let bytes = archive.finish();
        let header = "070701\
                      00000001000081ed000000000000000000000001000000000000000500000000000000000000000000000000\
                      0000000500000000";
        assert_eq!(&bytes[..110], header.as_bytes());
        assert_eq!(&bytes[110..], [&b"init\0\0agent\0\0\0"[..], &bytes[124..]].concat());
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(10).any(|window| window == END.as_bytes()));
    }
}
