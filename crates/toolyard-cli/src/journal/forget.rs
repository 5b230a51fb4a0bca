//! `toolyard journal forget`: releases an idempotency key (JR-10).

use super::{Failure, write};
use crate::{
    cli::JournalForgetArgs,
    display::clip,
    error::{Error, chain},
    exit::Exit,
    run::results,
};

const SHOWN_CHARS: usize = 80;

/// Releases the key.
pub(super) async fn forget(args: JournalForgetArgs) -> Result<Exit, Error> {
    let journal = write(&args.file)?;
    let released = journal.forget(&args.session, &args.key).await;
    journal.close()?;
    released.map_err(|error| Failure::Refused(chain(&error)))?;
    let (key, session) = (clip(&args.key, SHOWN_CHARS), clip(&args.session, SHOWN_CHARS));
    results::print_text(&format!("the key {key} of the session {session} is released\n"))?;
    Ok(Exit::Ok)
}
