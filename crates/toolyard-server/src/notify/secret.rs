//! The secret that what is sent is signed with, as Standard Webhooks says.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::{fmt, str::FromStr, sync::Arc};

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// How many bytes a secret has.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret that a receiver knows too: `whsec_` and 24 to 64 bytes in base64. It is not shown.
///
/// # Examples
/// ```
/// use toolyard_server::WebhookSecret;
/// assert!("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse::<WebhookSecret>().is_ok());
/// assert!("whsec_c2hvcnQ=".parse::<WebhookSecret>().is_err());
/// ```
#[derive(Clone)]
pub struct WebhookSecret(Arc<[u8]>);

/// The error for a text that is no secret; it does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret is 'whsec_' and 24 to 64 random bytes in base64, as 'echo whsec_$(openssl rand -base64 32)' prints one"
)]
pub struct WebhookSecretError;

impl WebhookSecret {
    /// The value of `webhook-signature` for a message.
    pub(super) fn signature(&self, id: &str, timestamp: u64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl FromStr for WebhookSecret {
    type Err = WebhookSecretError;

    fn from_str(text: &str) -> Result<Self, WebhookSecretError> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(WebhookSecretError)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| WebhookSecretError)?;
        if BYTES.contains(&bytes.len()) { Ok(Self(bytes.into())) } else { Err(WebhookSecretError) }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-5: a signature is that of the specification's own example.
    #[test]
    fn a_signature_is_as_the_specification_says() {
        let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature =
            secret.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    /// HT-5: what is no secret is refused, and not repeated.
    #[test]
    fn what_is_no_secret_is_refused() {
        for wrong in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_%%%"] {
            let error = wrong.parse::<WebhookSecret>().unwrap_err();
            assert!(wrong.len() < 7 || !error.to_string().contains(wrong), "{error}");
        }
        let long = format!("whsec_{}", BASE64_STANDARD.encode([7; 65]));
        assert!(long.parse::<WebhookSecret>().is_err());
    }
}
