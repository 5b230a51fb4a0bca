//! What a browser may load and run: of the live page by address, in a report by hash.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// The `Content-Security-Policy` with which a server sends the live page.
///
/// Only files and connections of the server itself; no script or style within the page, no frame around it, and no
/// text that becomes markup.
///
/// # Examples
/// ```
/// assert!(toolyard_page::PAGE_POLICY.starts_with("default-src 'none'"));
/// assert!(!toolyard_page::PAGE_POLICY.contains("unsafe"));
/// ```
pub const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The policy of a page that holds this one script and this one style sheet, and loads nothing.
pub(crate) fn of_single_file(script: &str, style: &str) -> String {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(script),
        hash(style)
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_one_that_browsers_compute() {
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
