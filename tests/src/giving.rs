//! Recorders that pass on what they are given.

/// The methods of a [`Recorder`](toolyard::Recorder) by which calls leave their records, each as `self.give(|to| …)`, which
/// passes the record on to whomever it likes. Within the `impl` of a recorder.
#[macro_export]
macro_rules! gives_records {
    () => {
        $crate::gives_records! {
            session(SessionRecord), fork(ForkRecord), batch(BatchRecord), pushed(PushRecord), closed(CloseRecord),
            question(QuestionRecord), answer(AnswerRecord), attempt(AttemptRecord), attempt_ended(AttemptEnd),
            ended(EndRecord), cancelled(CancelRecord), verdict(VerdictRecord)
        }
    };
    ($($method:ident($record:ident)),*) => {
        $(fn $method(&self, record: &toolyard::$record<'_>) -> toolyard::Durable {
            self.give(|to| toolyard::Recorder::$method(to, record))
        })*
    };
}
