//! Whether a program needs a loader, which machines do not have.

use std::{fs::File, io::Read as _, path::Path};

/// How much of a file is read: its header, and those of its segments, which follow.
const HEAD_BYTES: u64 = 4 << 10;

/// The kind of a segment that names a loader: `PT_INTERP`.
const LOADER: [u8; 4] = 3_u32.to_le_bytes();

/// Whether this is a program for 64-bit Linux that is loaded by the kernel alone.
pub(super) fn is_static(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && has_no_loader(&head).unwrap_or(false)
}

/// `None` for what is no such program, or whose headers lie further away.
fn has_no_loader(head: &[u8]) -> Option<bool> {
    let is_elf64 = head.starts_with(b"\x7fELF\x02\x01");
    let number = |at: usize| Some(usize::from(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?)));
    let first = usize::try_from(u64::from_le_bytes(head.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, count) = (number(54)?, number(56)?);
    let kinds = (0..count).map(|segment| {
        let at = segment.checked_mul(size)?.checked_add(first)?;
        head.get(at..at.checked_add(4)?)
    });
    let kinds: Vec<&[u8]> = kinds.collect::<Option<_>>()?;
    Some(is_elf64 && !kinds.is_empty() && !kinds.contains(&&LOADER[..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a program with segments of these kinds.
    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[32..40].copy_from_slice(&64_u64.to_le_bytes());
        head[54..56].copy_from_slice(&56_u16.to_le_bytes());
        head[56..58].copy_from_slice(&u16::try_from(kinds.len()).unwrap().to_le_bytes());
        for kind in kinds {
            head.extend(kind.to_le_bytes());
            head.extend([0; 52]);
        }
        head
    }

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        assert_eq!(has_no_loader(&program(&[1, 1, 4])), Some(true));
        assert_eq!(has_no_loader(&program(&[1, 3, 1])), Some(false));
        assert_eq!(has_no_loader(&program(&[1, 1])[..120]), None);
        assert_eq!((has_no_loader(b"#!/bin/sh"), has_no_loader(&[0; 64])), (None, Some(false)));
        assert!(!is_static(Path::new("/bin/ls")) && !is_static(Path::new("/no/such")));
    }
}
