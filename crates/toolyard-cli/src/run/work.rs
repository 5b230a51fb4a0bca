//! What a run has to do: an input, and for episodes what is left of it and where the results go.

use super::{count, episodes::Plan, kept::Left, live::Live, records, results::Results};
use crate::{
    cli::RunArgs,
    error::Error,
    input::{Input, Lines, Origin},
    setup::Setup,
};
use tokio::task::spawn_blocking;

/// The work of a run.
pub(super) enum Work {
    /// The calls of a response.
    Response(String),
    /// The calls of a response that may still be arriving.
    Stream(Lines),
    /// Episodes.
    Episodes(Plan),
    /// What a session of the journal has left open.
    Left,
}

impl Work {
    /// What a session of the journal has left open.
    ///
    /// # Errors
    /// [`Error::Usage`] if an argument is for episodes.
    pub(super) fn left(args: &RunArgs) -> Result<Self, Error> {
        without_episodes(args).map(|()| Self::Left)
    }

    /// Checks that the arguments fit the input, and finds out what is left of episodes.
    ///
    /// # Errors
    /// [`Error::Usage`] if an argument does not fit, or if the file of `--continue` has other results.
    pub(super) async fn of(
        input: Input,
        args: &RunArgs,
        origin: &Origin,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let lines = match input {
            Input::Episodes(lines) => lines,
            Input::Response(text) => return without_episodes(args).map(|()| Self::Response(text)),
            // A call is recorded with its response, so that it is known when that comes again.
            Input::Stream(lines) if args.journal.journal.is_some() => {
                without_episodes(args)?;
                let read = {
                    let origin = origin.clone();
                    move || origin.read_all(lines)
                };
                return blocking(origin, read).await.map(Self::Response);
            }
            Input::Stream(lines) => return without_episodes(args).map(|()| Self::Stream(lines)),
        };
        with_episodes(args)?;
        let turns = match Live::is_shown(args) {
            true => {
                blocking(origin, {
                    let origin = origin.clone();
                    move || Ok(count::turns(&origin))
                })
                .await?
            }
            false => None,
        };
        let mut results = records::results(args, origin, setup)?;
        let (left, results) = blocking(origin, {
            let origin = origin.clone();
            move || {
                let left = match &mut results {
                    Results::Stdout => Left::all(lines),
                    Results::File(file) => Left::behind(file, &origin, lines)?,
                };
                Ok((left, results))
            }
        })
        .await?;
        Ok(Self::Episodes(Plan { left, jobs: args.jobs, results, turns }))
    }
}

/// Runs what reads on a thread of its own, so that an interrupt does not wait for it.
async fn blocking<T: Send + 'static>(
    origin: &Origin,
    read: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(read).await.map_err(|error| origin.error(error))?
}

fn with_episodes(args: &RunArgs) -> Result<(), Error> {
    let why = if args.journal.journal.is_some() {
        "--journal is for one response: episodes go on with --continue FILE"
    } else if args.to.is_some() {
        "--to cannot be used with episodes: every turn has its own line of results"
    } else if args.sequential && args.jobs.get() > 1 {
        "--sequential runs one call at a time, which is one episode at a time: leave out --jobs, or --sequential"
    } else {
        return Ok(());
    };
    Err(Error::Usage(why.to_owned()))
}

fn without_episodes(args: &RunArgs) -> Result<(), Error> {
    let option = if args.continued.is_some() {
        "--continue"
    } else if args.jobs.get() > 1 {
        "--jobs"
    } else {
        return Ok(());
    };
    let why = "is for episodes, and the input is one response: see Episodes in toolyard run --help";
    Err(Error::Usage(format!("{option} {why}")))
}
