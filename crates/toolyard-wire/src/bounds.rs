//! The bounds of this crate. Input that exceeds one is refused with an error.

/// The most bytes of one response that are read, whole or streamed: 64 MiB.
pub const BODY_BYTES_MAX: usize = 64 << 20;

/// The largest index a provider may give a streamed call or content block.
pub const FRAGMENT_INDEX_MAX: u64 = 65_535;

/// The most array items that the paths of one Gemini stream may skip: `$.a[9999999]` must not allocate an array
/// of that length. Skipping itself is legitimate, because an item that is an empty object has no path.
pub const PARTIAL_HOLES_MAX: usize = 65_535;

/// The most steps in the path of a streamed Gemini argument, which bounds how deep arguments nest.
pub const PARTIAL_DEPTH_MAX: usize = 100;
