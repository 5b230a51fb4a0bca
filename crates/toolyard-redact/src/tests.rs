//! Tests of redaction.

mod patterns;
mod secrets;
mod spellings;
mod streams;
