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

/// The most bytes of a call's id in a [`CallMeta`](crate::CallMeta).
pub const CALL_ID_BYTES_MAX: usize = 1024;

/// The most bytes of one text in a [`ResultMeta`](crate::ResultMeta), and of the arguments in it: what the engine takes
/// as the arguments of a call.
pub const META_TEXT_BYTES_MAX: usize = 256 << 10;

/// The most places in a [`FailureMeta`](crate::FailureMeta) where the arguments do not match the schema.
pub const VALIDATION_ERRORS_MAX: usize = 100;

/// The longest time that a call may have waited or run, in milliseconds: 136 years.
pub const ELAPSED_MS_MAX: u64 = u32::MAX as u64 * 1000;

/// How many errors of earlier attempts may be inside one another in an outcome that is read.
pub const LAST_ERRORS_MAX: usize = 8;
