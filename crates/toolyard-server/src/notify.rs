//! Whoever is elsewhere is told of each question that is opened (HT-5).
//!
//! ```text
//!   question ─► Outbox ─► Teller ─► signed POST ─┬─ 2xx: delivered
//!                 │ full: dropped                ├─ 408, 425, 429, 5xx, no answer: again, with backoff, while it is open
//!                 ▼                              └─ any other status: failed
//!              counted
//! ```
//!
//! A question never waits for it: what does not fit into the outbox is dropped, and told by `/metrics`.

mod note;
mod outbox;
mod secret;
mod teller;

pub(crate) use outbox::{Counts, Outbox};
pub use secret::{WebhookSecret, WebhookSecretError};
pub(crate) use teller::Teller;

use std::{path::PathBuf, time::Duration};
use toolyard::{RetryPolicy, SettingError};
use toolyard_egress::{Addresses, Egress, SetupError, Webhook};

/// How many questions wait to be told of.
const QUEUE_MAX: usize = 1024;

/// How long an attempt may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is tried to tell of a question.
const ATTEMPTS_MAX: u32 = 5;

/// Who is told of each question that is opened, by a POST that is signed as [Standard
/// Webhooks](https://www.standardwebhooks.com) says (HT-5). The address may hold a secret, and is not shown.
///
/// # Examples
/// ```
/// use toolyard_server::{Notify, ServerOptions, WebhookSecret};
/// let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse()?;
/// let notify = Notify::new("http://hooks.example.com/questions", secret)
///     .link("https://tools.example.com/ask/{request_id}");
/// notify.check()?;
/// let options = ServerOptions::default().notify(notify);
/// # let _ = options;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Notify {
    url: String,
    secret: WebhookSecret,
    addresses: Addresses,
    authorities: Option<PathBuf>,
    link: Option<String>,
    queue_max: usize,
    attempt_timeout: Duration,
    retry: RetryPolicy,
}

impl Notify {
    /// Tells whoever is at this address. `https:` needs the feature `https` of this crate.
    pub fn new(url: impl Into<String>, secret: WebhookSecret) -> Self {
        let (base, cap) = (Duration::from_secs(1), Duration::from_secs(60));
        let retry = RetryPolicy::default().with_max_attempts(ATTEMPTS_MAX);
        Self {
            url: url.into(),
            secret,
            addresses: Addresses::Public,
            authorities: None,
            link: None,
            queue_max: QUEUE_MAX,
            attempt_timeout: ATTEMPT_TIMEOUT,
            retry: retry.with_delays(base, 4.0, cap),
        }
    }

    /// Allows the address to be one of this machine or of its networks.
    #[must_use]
    pub fn allow_private(mut self) -> Self {
        self.addresses = Addresses::Any;
        self
    }

    /// Trusts the certificate authorities in this file of PEM beside those of the system.
    #[must_use]
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.authorities = Some(file.into());
        self
    }

    /// Looks for a number that makes no sense.
    pub(crate) fn check_numbers(&self) -> Result<(), SettingError> {
        if self.queue_max == 0 {
            return Err(SettingError::Zero("queue_max"));
        }
        self.retry.checked().map(drop).map_err(SettingError::Retry)
    }

    /// Sets the link to a question that is sent, with `{session}`, `{turn}` and `{request_id}` in the places of these.
    /// Without it, it is the page's address, or that of the question where no page is served. Whoever opens it needs a
    /// key or a token as ever.
    #[must_use]
    pub fn link(mut self, template: impl Into<String>) -> Self {
        self.link = Some(template.into());
        self
    }

    /// Sets how many questions wait to be told of, at least 1; 1024 otherwise. Beyond that the newest is dropped.
    #[must_use]
    pub fn queue_max(mut self, most: usize) -> Self {
        self.queue_max = most;
        self
    }

    /// Sets how long an attempt may take; 10 s otherwise.
    #[must_use]
    pub fn attempt_timeout(mut self, longest: Duration) -> Self {
        self.attempt_timeout = longest;
        self
    }

    /// Sets how often it is tried, and how long is waited in between. Otherwise there are five attempts, 1 to 1.5, 4 to 6,
    /// 16 to 24 and 40 to 60 s apart.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Checks that the address can be spoken to at all. This may read the certificate authorities.
    ///
    /// # Errors
    /// [`SetupError`]: the URL is not valid, its address may not be dialled, or it needs TLS, which cannot be had.
    pub fn check(&self) -> Result<(), SetupError> {
        self.webhook().map(drop)
    }

    fn webhook(&self) -> Result<Webhook, SetupError> {
        let egress = Egress::new().connect_timeout(self.attempt_timeout);
        let egress = match &self.authorities {
            Some(file) => egress.authorities(file),
            None => egress,
        };
        Webhook::new(&self.url, self.addresses, &egress)
    }
}

impl std::fmt::Debug for Notify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notify").field("retry", &self.retry).finish_non_exhaustive()
    }
}
