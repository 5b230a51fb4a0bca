//! `toolyard audit` on logs that are whole and on logs that were tampered with.

mod account;
mod lives;
mod proof;
mod tampered;
