//! The transport to a server over streamable HTTP.

use super::{guard::Guard, web::Web};
use crate::{
    client::{
        config::{Header, Remote},
        protocol::{AnswerTimeouts, Disconnect, Intake},
    },
    frame::LINE_BYTES_MAX,
};
use http::{HeaderName, HeaderValue};
use reqwest::{
    Client, StatusCode, Url,
    redirect::{Attempt, Policy},
};
use rmcp::{
    RoleClient,
    transport::{
        StreamableHttpClientTransport, Transport, common::client_side_sse::ExponentialBackoff,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::Notify;
use toolyard_egress::Egress;

/// Maximum number of concurrent requests. High, because the engine has its own bounds, and calls must not queue twice.
const REQUESTS_MAX: usize = 1024;

/// How often a stream that broke off is resumed, and the wait before the first time; it doubles each time.
const RESUMES_MAX: usize = 3;
const RESUME_DELAY: Duration = Duration::from_millis(200);

/// Time limit for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of redirects in a row within a server.
const REDIRECTS_MAX: usize = 5;

/// Builds the transport; nothing is sent yet.
///
/// # Errors
/// What is wrong with the configuration: for example an invalid URL, or a certificate that cannot be read.
pub(crate) fn connect(
    remote: &Remote,
    timeouts: AnswerTimeouts,
    disconnect: Disconnect,
    changed: Arc<Notify>,
    intake: Intake,
) -> Result<impl Transport<RoleClient> + 'static, String> {
    let url = url(&remote.url)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.max_concurrent_requests = REQUESTS_MAX;
    config.max_sse_event_size = LINE_BYTES_MAX;
    // Without a bound, a call whose server is gone would wait for its timeout.
    let mut retry = ExponentialBackoff::default();
    (retry.max_times, retry.base_duration) = (Some(RESUMES_MAX), RESUME_DELAY);
    config.retry_config = Arc::new(retry);
    config.auth_header = remote.bearer.as_ref().map(|token| token.0.clone());
    config.custom_headers = remote.headers.iter().map(header).collect::<Result<HashMap<_, _>, _>>()?;
    let web = Web::new(client(&url, remote)?, timeouts, disconnect, changed, intake);
    Ok(StreamableHttpClientTransport::with_client(web, config))
}

fn url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("its URL is not valid: {error}"))?;
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => {
            Err("its URL must not contain a user or password: use a header".to_owned())
        }
        "http" => Ok(url),
        "https" if cfg!(feature = "https") => Ok(url),
        "https" => Err("its URL begins with https://, but this program was built without TLS".to_owned()),
        other => Err(format!("its URL begins with '{other}:', which is neither http: nor https:")),
    }
}

fn header(header: &Header) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(&header.name)
        .map_err(|_| format!("'{}' is not a valid header name", header.name.escape_debug()))?;
    let mut value = HeaderValue::try_from(&header.value.0)
        .map_err(|_| format!("the value of the header '{name}' is not valid"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Every request has a new connection: one that was used before may be closed just when it is used again, and then the
/// outcome of the call is unknown.
pub(crate) fn client(url: &Url, remote: &Remote) -> Result<Client, String> {
    client_by(url, remote, Egress::new())
}

/// The same, by this way out: no proxy of the environment stands between a name and the address that was judged.
pub(super) fn client_by(url: &Url, remote: &Remote, egress: Egress) -> Result<Client, String> {
    let builder = Client::builder()
        .no_proxy()
        .dns_resolver(Arc::new(Guard::new(url, remote, egress)))
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::custom(redirect));
    #[cfg(feature = "https")]
    let builder = builder.tls_backend_preconfigured(super::tls::config(url, remote.ca.as_deref())?);
    builder.build().map_err(|error| format!("no HTTP client can be created for it: {error}"))
}

/// Follows a redirect within the server that keeps the message. One that would lose the message is treated like any
/// answer, and one to another server fails: that server must not see the token, the session or the message.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_message =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let Some(first) = attempt.previous().first() else { return attempt.stop() };
    if first.origin() != attempt.url().origin() {
        let there = attempt.url().origin().ascii_serialization();
        return attempt.error(format!("it redirects to {there}, another server, which is not followed"));
    }
    match attempt.previous().len() {
        _ if !keeps_message => attempt.stop(),
        hops if hops > REDIRECTS_MAX => {
            attempt.error(format!("it redirects more than {REDIRECTS_MAX} times in a row"))
        }
        _ => attempt.follow(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_http_and_has_no_user() {
        assert!(url("http://127.0.0.1:9/mcp").is_ok());
        assert_eq!(url("https://h/mcp").is_ok(), cfg!(feature = "https"));
        for (text, why) in [
            ("h/mcp", "its URL is not valid"),
            ("file:///etc/passwd", "neither http: nor https:"),
            ("http://me:secret@h/", "not contain a user or password"),
        ] {
            let error = url(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_invalid_header_is_reported_without_its_value() {
        let remote =
            |name: &str| crate::client::config::ServerConfig::http("a", "http://h").header(name, "se\ncret");
        let config = remote("x-key");
        let error = header(&config.remote.as_ref().unwrap().headers[0]).unwrap_err();
        assert_eq!(error, "the value of the header 'x-key' is not valid");
        let config = remote("x key");
        assert!(
            header(&config.remote.as_ref().unwrap().headers[0])
                .unwrap_err()
                .contains("not a valid header name")
        );
    }
}
