//! One question about one call, from its first asking to its end.
//!
//! ```text
//!   lead ───┬─ answered ─────────► still allowed? ─► approved, or refused
//!           ├─ settled by the answer to another ───► approved, or refused
//!           ├─ policy changed ───► still allowed? ─► asked anew, about what would run now
//!           ├─ expired ────────────────────────────► confirmation_timeout
//!           └─ cancelled ──────────────────────────► withdrawn; the oldest follower leads
//!
//!   an answer that is given is taken with the call's next step, and its giver is told so then (SM-6); with a recorder,
//!   a question is shown and an answer counts when that is durable (`question/recorded.rs`)
//!
//!   an answer with other arguments ─► checked as at the gate ─┬─ they run instead (SM-5)
//!                                                             └─ may not: its giver is told, and asked again
//!
//!   follow ─── waits for the end of the question that a call of equal key and digest leads (ID-3), and takes over
//!              what its answer changed
//! ```

mod recorded;
mod weigh;

use crate::{
    agent::{FromLead, Lead, Settlement, Share, ShareKey, WaitingQuestion},
    call::{
        given::Given,
        in_flight::{CallRef, InFlight},
        refusals::Refusal,
        verdict::Verdict,
    },
    gate::{self, Consent, Edit},
    tasks::{Caught, Contained, caught},
};
use std::sync::Arc;
use tokio::sync::oneshot;
use toolyard_core::{
    Answer, ApprovalRequest, Approver, CallDigest, CallError, Decision, Receipt, RequestId, event::SettledBy,
};
use weigh::Weighed;

/// How often one question is asked again because the arguments that it was answered with may not run. A program that
/// answers at once could go on for ever.
const EDITS_MAX: u32 = 8;

/// A question about one call.
pub(crate) struct Question {
    call: CallRef,
    approver: Contained<Arc<dyn Approver>>,
    request: ApprovalRequest,
    part: Part,
    /// The approver's answer, until it is taken.
    given: Option<Given>,
    /// What that answer, or the one that is shared, changes.
    edit: Option<Edit>,
    /// How many changes were refused.
    refused: u32,
    /// What a recorder was told that the question is about.
    recorded: Option<CallDigest>,
    /// The answer that an earlier life of the engine was given, and what it is about (JR-9).
    recalled: Option<(CallDigest, Answer)>,
    /// Whether that is what settles the question.
    is_recalled: bool,
}

/// The call's part in its question.
enum Part {
    /// It has no key under which others could share the question.
    Alone,
    /// Others may follow.
    Lead(Lead),
    /// Another call's question, which has this request, is asked.
    Follow(RequestId, oneshot::Receiver<FromLead>),
}

/// How a question was settled.
enum Settled {
    Answered(Answer),
    /// By the answer to the question that this one shares.
    Shared(Answer),
    /// By the answer to another question of the same pattern.
    With(Answer),
    Panicked,
    Expired,
    /// The policy refuses the call.
    Refused(CallError),
}

/// What a follower does next.
enum Followed {
    Settled(Settled),
    /// Its own approver is asked.
    Lead(Lead),
    /// The answer was about something else than what would run now.
    Outdated,
}

impl Question {
    fn at(&self) -> InFlight<'_> {
        self.call.at()
    }

    /// A question, which joins the one of an equal call that waits.
    pub(crate) fn new(
        call: CallRef,
        approver: Contained<Arc<dyn Approver>>,
        request: ApprovalRequest,
    ) -> Self {
        let (part, given, edit, refused, recorded) = (Part::Alone, None, None, 0, None);
        let (recalled, is_recalled) = (None, false);
        let mut question =
            Self { call, approver, request, part, given, edit, refused, recorded, recalled, is_recalled };
        question.share();
        question
    }

    /// The same, which an earlier life of the engine was given this answer to.
    pub(crate) fn recalling(self, recalled: Option<(CallDigest, Answer)>) -> Self {
        Self { recalled, ..self }
    }

    /// The answer of before, if it is about what would run now. Asked again because what it changed may not run, its giver
    /// is not here.
    fn recall(&mut self) -> Option<Answer> {
        let digest = *self.request.digest();
        let (_, answer) = self.recalled.take_if(|(about, _)| *about == digest)?;
        self.is_recalled = true;
        Some(answer)
    }

    /// The request.
    pub(crate) fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// The request of the question that this one shares.
    pub(crate) fn shares(&self) -> Option<RequestId> {
        match self.part {
            Part::Alone | Part::Lead(_) => None,
            Part::Follow(request, _) => Some(request),
        }
    }

    /// Joins the question of an equal call, or leads it. All of them change with the policy, so it is not compared.
    fn share(&mut self) {
        let (session, work) = (self.at().session(), self.at().work());
        let Some(key) = work.key() else { return };
        let call = gate::shared_digest(&work.entry, self.at().args(), session);
        let key = ShareKey { key: key.name.key().clone(), call };
        self.part = match session.questions().share(key, self.request.id()) {
            Share::Lead(lead) => Part::Lead(lead),
            Share::Follow(request, told) => Part::Follow(request, told),
        };
    }

    /// Asks until there is an answer about what would run now.
    pub(crate) async fn ask(mut self) {
        let mut others = self.at().session().approvals().wait(self.request.pattern().key());
        if self.at().engine().recorder.is_some() {
            if let Err(error) = self.record().await {
                return self.refuse(error);
            }
            if !self.at().show(&self.request, self.shares()) {
                return;
            }
        }
        let settled = loop {
            let told = match std::mem::replace(&mut self.part, Part::Alone) {
                Part::Follow(_, told) => told,
                part => {
                    self.part = part;
                    break self.lead(&mut others).await;
                }
            };
            match self.follow(told, &mut others).await {
                Followed::Settled(settled) => break settled,
                Followed::Lead(lead) => self.part = Part::Lead(lead),
                Followed::Outdated => self.share(),
            }
        };
        match self.record_answer(&settled).await {
            Ok(()) => self.settle(settled),
            Err(error) => self.refuse(error),
        }
    }

    /// Waits for what the leader of the question is told.
    async fn follow(
        &mut self,
        mut told: oneshot::Receiver<FromLead>,
        others: &mut WaitingQuestion,
    ) -> Followed {
        let engine = self.at().engine().clone();
        let policy = engine.rules.changed();
        loop {
            // Made before the check below, so that no later change is missed.
            let changed = policy.notified();
            if let Err(error) = self.check_and_record().await {
                return Followed::Settled(Settled::Refused(error));
            }
            let how = tokio::select! {
                biased;
                told = &mut told => match told {
                    Ok(FromLead::Settled(how)) => how,
                    Ok(FromLead::Lead(lead)) => return Followed::Lead(lead),
                    Err(_) => return Followed::Outdated,
                },
                with = others.settled() => return Followed::Settled(Settled::With(with)),
                () = changed => continue,
            };
            return match how {
                Settlement::Panicked => Followed::Settled(Settled::Panicked),
                Settlement::Expired => Followed::Settled(Settled::Expired),
                Settlement::Answered(answer, _) if !answer.allows() => {
                    Followed::Settled(Settled::Shared(answer))
                }
                Settlement::Answered(answer, digest) if digest == *self.request.digest() => {
                    let mut answer = answer;
                    match self.weigh(&mut answer).await {
                        Weighed::Counts => Followed::Settled(Settled::Shared(answer)),
                        Weighed::Denied(error) => Followed::Settled(Settled::Refused(error)),
                        // What the answer changed may run for the other call, and not for this one.
                        Weighed::Outdated | Weighed::Refused(_) => Followed::Outdated,
                    }
                }
                Settlement::Answered(..) => Followed::Outdated,
            };
        }
    }

    /// Has the approver asked.
    async fn lead(&mut self, others: &mut WaitingQuestion) -> Settled {
        let engine = self.at().engine().clone();
        let policy = engine.rules.changed();
        let showing = self.request.showing().clone();
        // Unconstrained: an approver that is always busy would use up the task's budget, and its expiry would go
        // unnoticed.
        let over = showing.over(self.request.expires_in(), tokio::time::sleep);
        let mut over = std::pin::pin!(tokio::task::unconstrained(over));
        loop {
            // Made before the check below, so that no later change is missed.
            let changed = policy.notified();
            if let Err(error) = self.check_and_record().await {
                return Settled::Refused(error);
            }
            let recalled = self.recall();
            let is_recalled = recalled.is_some();
            let mut settled = tokio::select! {
                biased;
                with = others.settled() => Settled::With(with),
                // Before the change of policy: whoever gave an answer learns that it is about something else.
                answer = self.answer(recalled) => answer,
                () = changed => continue,
                () = &mut over => Settled::Expired,
            };
            match settled {
                Settled::Answered(ref mut answer) => {
                    // Whoever has answered an earlier life of the engine is not told.
                    let given = (!is_recalled).then(|| self.given());
                    let tell = |given: Option<Given>, receipt| {
                        if let Some(given) = given {
                            given.tell(receipt);
                        }
                    };
                    match self.weigh(answer).await {
                        Weighed::Counts => {
                            self.given = given;
                            return settled;
                        }
                        Weighed::Outdated => tell(given, Receipt::Outdated),
                        Weighed::Denied(error) => {
                            tell(given, Receipt::Outdated);
                            return Settled::Refused(error);
                        }
                        Weighed::Refused(why) => {
                            tell(given, Receipt::Refused(why.clone()));
                            self.refused += 1;
                            if self.refused >= EDITS_MAX {
                                return Settled::Refused(Refusal::EditsRefused.error());
                            }
                            self.request = self.request.after(why);
                            self.is_recalled = false;
                        }
                    }
                }
                Settled::With(_) if self.is_outdated() => {
                    return self.check_again().map_or_else(Settled::Refused, |()| settled);
                }
                settled => return settled,
            }
        }
    }

    /// Whether the policy has changed since the call was last allowed.
    fn is_outdated(&self) -> bool {
        self.at().policy_of() != self.at().engine().rules.version()
    }

    /// Checks a call again after a change of the policy. If it is still allowed, the question is now about what would
    /// run.
    fn check_again(&mut self) -> Result<(), CallError> {
        if !self.is_outdated() {
            return Ok(());
        }
        let call = self.at();
        let (entry, args) = (&call.work().entry, call.args());
        let anew = gate::recheck_policy(entry, args, call.session())?;
        let digest = anew.digest(entry, args, call.session());
        call.grant_anew(anew.allowed, Some(digest))?;
        if digest != *self.request.digest() {
            self.request = self.request.renewed(digest);
        }
        Ok(())
    }

    /// The same, and waits until a recorder knows what is asked about now.
    async fn check_and_record(&mut self) -> Result<(), CallError> {
        self.check_again()?;
        match self.at().engine().recorder.is_some() {
            true => self.record().await,
            false => Ok(()),
        }
    }

    fn given(&self) -> Given {
        Given::new(self.approver.clone(), self.request.clone(), self.at().engine().redactor.clone())
    }

    /// Tells the approver that its answer counts.
    fn taken(&mut self) {
        if let Some(given) = self.given.take() {
            given.tell(Receipt::Taken);
        }
    }

    async fn answer(&self, recalled: Option<Answer>) -> Settled {
        if let Some(answer) = recalled {
            return Settled::Answered(answer);
        }
        let answered = match caught(|| self.approver.ask(&self.request)) {
            Ok(answer) => Caught::new(answer).await,
            Err(panic) => Err(panic),
        };
        answered.map_or_else(
            |panic| {
                let tool = &*self.at().call().name;
                let redactor = self.at().engine().redactor.as_ref();
                panic.log("the approver panicked; the call is refused", Some(tool), redactor);
                Settled::Panicked
            },
            Settled::Answered,
        )
    }

    /// Ends the question: for those who share it, for those it is remembered for, and for its own call.
    fn settle(mut self, settled: Settled) {
        let for_followers = match &settled {
            Settled::Answered(answer) => Some(Settlement::Answered(answer.clone(), *self.request.digest())),
            Settled::Panicked => Some(Settlement::Panicked),
            Settled::Expired => Some(Settlement::Expired),
            // Followers learn so themselves, or have their own approver asked.
            Settled::With(_) | Settled::Shared(_) | Settled::Refused(_) => None,
        };
        let part = std::mem::replace(&mut self.part, Part::Alone);
        if let (Some(how), Part::Lead(lead)) = (for_followers, part)
            && lead.settle(how)
        {
            self.taken();
        }
        if let Settled::Answered(answer) = &settled
            && self.is_remembered(answer)
        {
            self.at().session().approvals().remember(self.request.pattern().key(), answer.clone());
            self.taken();
        }
        match settled {
            Settled::Answered(answer) => self.decide(Verdict::new(answer, SettledBy::Approver)),
            Settled::Shared(answer) => self.decide(Verdict::new(answer, SettledBy::Shared)),
            Settled::With(answer) => self.decide(Verdict::new(answer, SettledBy::Pattern)),
            Settled::Panicked => self.refuse(Refusal::ApproverPanicked.error()),
            Settled::Expired => self.refuse(Refusal::NotApproved.error()),
            Settled::Refused(error) => self.refuse(error),
        }
    }

    /// Whether an answer holds for other calls of the pattern too.
    fn is_remembered(&self, answer: &Answer) -> bool {
        if self.is_recalled {
            return false; // what was remembered before does not come back (JR-10)
        }
        // What was changed holds for this call alone: others were asked about as they are.
        let once = self.edit.is_none() && matches!(self.at().work().consent, Consent::Ask { once: true });
        match answer.decision() {
            Decision::Always | Decision::Never => true,
            Decision::Allow | Decision::Deny => once,
            // Nobody has said anything about other calls.
            Decision::Nobody | Decision::TooLong => false,
        }
    }

    fn decide(mut self, verdict: Verdict) {
        if verdict.answer.allows() {
            return self.approve(verdict);
        }
        let error = gate::refused_by(&verdict.answer);
        if self.at().deny(error, verdict) || self.is_asked_later() {
            self.taken();
        }
    }

    /// Ends the call without anybody's answer.
    fn refuse(self, error: CallError) {
        self.at().refuse(|| error);
    }

    /// Approves the call: it proceeds at once if its run waits for the answer, else with its run.
    fn approve(mut self, verdict: Verdict) {
        let call = self.call.clone();
        let call = call.at();
        let mut life = call.slot().life();
        let Some(run_begun) = life.approved() else {
            drop(life);
            if self.is_asked_later() {
                self.taken();
            }
            return;
        };
        if let Some(edit) = self.edit.take() {
            // Under the lock, so that nobody starts the call with other arguments than these.
            call.work().apply(edit);
        }
        let digest = call.digest().map(|digest| *digest.get());
        call.emit(None, || verdict.event(None, digest, call.edit_shown()));
        drop(life);
        self.taken();
        if run_begun {
            call.start_or_wait(call.engine().clock.now());
        }
    }
}
