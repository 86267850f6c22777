//! What a doctor found.

use serde_json::{Value, json};

use super::output::Report;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Leases are in danger, or none are granted.
    Error,
    /// It will be trouble, or costs endpoints.
    Warning,
    /// Worth knowing; it is no fault.
    Note,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One finding.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    level: Level,
    check: &'static str,
    what: String,
    mend: Option<String>,
}

/// All that was found, and what could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct Diagnosis {
    findings: Vec<Finding>,
    unknown: Vec<String>,
    facts: Vec<(&'static str, String)>,
    mended: Vec<String>,
}

impl Diagnosis {
    pub(crate) fn error(&mut self, check: &'static str, what: impl Into<String>, mend: String) {
        self.find(Level::Error, check, what, Some(mend));
    }

    pub(crate) fn warning(&mut self, check: &'static str, what: impl Into<String>, mend: String) {
        self.find(Level::Warning, check, what, Some(mend));
    }

    pub(crate) fn note(&mut self, check: &'static str, what: impl Into<String>) {
        self.find(Level::Note, check, what, None);
    }

    fn find(
        &mut self,
        level: Level,
        check: &'static str,
        what: impl Into<String>,
        mend: Option<String>,
    ) {
        self.findings.push(Finding { level, check, what: what.into(), mend });
    }

    /// What could not be looked at, and why.
    pub(crate) fn unknown(&mut self, what: impl Into<String>) {
        self.unknown.push(what.into());
    }

    pub(crate) fn fact(&mut self, name: &'static str, value: impl Into<String>) {
        self.facts.push((name, value.into()));
    }

    pub(crate) fn mended(&mut self, what: Vec<String>) {
        self.mended = what;
    }

    /// Whether anything is wrong.
    pub(crate) fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.level == Level::Note)
    }

    pub(crate) fn has(&self, check: &str) -> bool {
        self.findings.iter().any(|finding| finding.check == check)
    }

    pub(crate) fn report(mut self) -> Report {
        self.findings.sort_by_key(|finding| finding.level);
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "level": finding.level.word(), "check": finding.check, "what": finding.what,
                    "mend": finding.mend,
                })
            })
            .collect();
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let sound = self.is_sound();
        let mut report = Report::new(json!({
            "sound": sound, "findings": findings, "unknown": self.unknown, "facts": facts,
            "mended": self.mended,
        }))
        .facts(&self.facts.iter().map(|(name, value)| (*name, value.clone())).collect::<Vec<_>>());
        for mended in &self.mended {
            report = report.line(format!("mended: {mended}"));
        }
        for finding in &self.findings {
            report = report.line("").line(format!("{}: {}", finding.level.word(), finding.what));
            if let Some(mend) = &finding.mend {
                report = report.line(format!("  mend: {mend}"));
            }
        }
        for unknown in &self.unknown {
            report = report.line("").line(format!("unknown: {unknown}"));
        }
        let faults = self.findings.iter().filter(|finding| finding.level != Level::Note).count();
        let closing = match faults {
            0 => "nothing is wrong".to_owned(),
            1 => "1 finding".to_owned(),
            _ => format!("{faults} findings"),
        };
        report.line("").line(closing)
    }
}
