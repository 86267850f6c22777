//! The scripts of `lua/`, with what they take.

use super::keys::STATE;
use super::script::Script;

/// A script, its keys and its arguments.
pub(crate) struct Command {
    pub(crate) script: Script,
    /// Names of keys that it takes always, in order.
    pub(crate) keys: &'static [&'static str],
    /// As in the script's header.
    #[cfg_attr(not(debug_assertions), allow(dead_code, reason = "debug builds compare calls"))]
    pub(crate) args: &'static str,
    #[cfg(test)]
    pub(crate) header: &'static str,
}

/// Joins each script from its parts and its own file. What is in braces is made only by calls that
/// are not `usual`, as the parts before it find: making functions is a good part of what a call
/// costs. Then it is in `rare`.
macro_rules! commands {
    ($(
        $name:ident $file:literal $flags:literal [$($part:literal)*]
        $(=> {$($rare:literal)*: $($made:ident)*} [$($after:literal)*])?
        $keys:expr, $args:literal;
    )*) => {
        $(pub(crate) static $name: Command = Command {
            script: Script::new($file, concat!(
                "#!lua", $flags, "\n",
                $(include_str!(concat!("../../lua/parts/", $part, ".lua")),)*
                $(
                    "local rare = not usual and (function()\n",
                    $(include_str!(concat!("../../lua/parts/", $rare, ".lua")),)*
                    "return {", $(stringify!($made), "=", stringify!($made), ",",)* "}\nend)()\n",
                    $(include_str!(concat!("../../lua/parts/", $after, ".lua")),)*
                )?
                include_str!(concat!("../../lua/", $file, ".lua")),
            )),
            keys: $keys,
            args: $args,
            #[cfg(test)]
            header: include_str!(concat!("../../lua/", $file, ".lua")),
        };)*

        #[cfg(test)]
        pub(crate) static ALL: &[&Command] = &[$(&$name),*];
    };
}

commands! {
    INIT "init" "" ["start" "arguments" "allowed" "audit" "note"] STATE,
        "by? config_version? mode policy largest_ttl_us largest_lifetime_us failover_hold start loss";
    LOAD "load" ""
        ["start" "arguments" "allowed" "members" "weight" "audit"]
        &["meta", "ready", "members", "uses", "weights"],
        "by? config_version? number? (id weight assignments?)*";
    OPEN "open" "" ["start" "arguments" "allowed" "audit"] &["meta"], "by? config_version?";
    DESTROY "destroy" "" ["start" "arguments" "allowed" "audit"] STATE, "by? config_version?";
    AUDIT "audit" " flags=no-writes" ["start" "arguments"] &["meta", "audit"], "before? limit";
    ACQUIRE "acquire" ""
        ["start" "acquire_one" "request" "offer"] => {"arguments" "allowed" "orders" "weight" "moves"
            "sweep" "choice" "recall" "hold" "supply": supply merged raised} []
        STATE,
        "ttl_us cooldown_us random prefer tokens token+ exclude*";
    ASSIGN "assign" ""
        ["start" "assign_one" "request" "share"] => {"arguments" "allowed" "orders" "weight" "moves"
            "sweep" "choice" "recall" "least" "spread": spread places least_of heft} []
        STATE,
        "ttl_us cooldown_us random prefer tokens token+ exclude*";
    RENEW "renew" " flags=allow-oom" ["start" "arguments"] &["meta", "leases", "requests"],
        "token ttl_us";
    RELEASE "release" " flags=allow-oom"
        ["start" "release_one" "releases" "verdicts" "endings"] => {"arguments" "allowed" "orders"
            "weight" "moves" "strikes": moves judge shun ordered} [] STATE,
        "(token cooldown_us strike quarantine? shun_us)+ hint?";
    JUDGE "judge" " flags=allow-oom"
        ["start" "judgements" "verdicts" "evidence"] => {"arguments" "allowed" "weight" "orders"
            "moves" "strikes": moves judge shun} [] STATE,
        "(id fence cooldown_us strike quarantine? shun_us)+";
    CANCEL "cancel" " flags=allow-oom"
        ["start" "arguments" "allowed" "weight" "orders" "moves" "sweep"] STATE,
        "token tombstone_us";
    REAP "reap" " flags=allow-oom"
        ["start" "arguments" "allowed" "weight" "orders" "moves" "sweep"] STATE, "";
    STATUS "status" " flags=no-writes" ["start" "arguments" "orders"]
        &["meta", "ready", "cooling", "leases", "parked"],
        "orders cursor?";
    LIST "list" " flags=no-writes" ["start" "arguments" "orders" "weight"]
        &["meta", "ready", "cooling", "leases", "parked", "members", "uses", "weights", "strikes"],
        "orders after? limit";
    CHECK "check" " flags=no-writes" ["start" "arguments" "sense" "findings" "checks"]
        &["meta", "ready", "cooling", "leases", "requests", "cancelled", "parked",
          "members", "uses", "strikes", "weights"],
        "orders after? limit";
    STRAY "stray" " flags=no-writes" ["start" "arguments" "sense" "findings"]
        &["meta", "former", "members", "weights", "strikes"],
        "orders part cursor";
    SETTINGS "settings" " flags=no-writes" ["start"] &["meta"], "";
    MEND "mend" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "note" "sense" "repair"]
        STATE, "by? config_version? after? limit";
    ADOPT "adopt" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "note" "sense" "repair"
            "claims"] STATE,
        "by? config_version? part cursor";
    REPORT "report" " flags=no-writes" ["start" "arguments"] &["meta"], "";
    RIGHTS "rights" " flags=no-writes" ["start" "arguments"] &["meta"], "";
    REMAINS "remains" " flags=no-writes" ["start" "arguments"]
        &["meta", "ready", "cooling", "leases", "parked", "members", "uses", "weights", "strikes",
          "former"], "";
    FORGET "forget" "" ["start" "arguments"] &["meta", "audit"], "";
    ADD "add" "" ["start" "arguments" "allowed" "members" "weight" "orders" "audit" "moves"] STATE,
        "by? config_version? (id weight assignments?)*";
    REMOVE "remove" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "roster"] STATE,
        "by? config_version? id*";
    DISABLE "disable" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "roster"] STATE,
        "by? config_version? order id*";
    ENABLE "enable" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "roster"] STATE,
        "by? config_version? id*";
    QUARANTINE "quarantine" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "roster"] STATE,
        "by? config_version? code id*";
    END_QUARANTINE "end_quarantine" ""
        ["start" "arguments" "allowed" "weight" "orders" "audit" "moves" "roster"] STATE,
        "by? config_version? code id*";
    PAUSE "pause" ""
        ["start" "arguments" "allowed" "orders" "audit"] &["meta"], "by? config_version? orders";
    RESUME "resume" "" ["start" "arguments" "allowed" "orders" "audit"] &["meta"],
        "by? config_version? orders what";
    BUDGET_RESERVE "budget/reserve" ""
        ["instant" "reserve_one" "budget" "state" "places"] &["budget"],
        "interval_us burst probe_us empty (most passage hold_us)*";
    BUDGET_UNDO "budget/undo" " flags=allow-oom" ["instant" "budget" "state"] &["budget"],
        "tat interval_us probe";
    BUDGET_PAUSE "budget/pause" " flags=allow-oom" ["instant" "budget" "state"] &["budget"],
        "known asked_us first_us longest_us";
    BUDGET_SETTLE "budget/settle" " flags=allow-oom" ["instant" "budget" "state"] &["budget"],
        "known interval_us burst what";
    BUDGET_RESET "budget/reset" " flags=allow-oom" ["instant" "budget" "state"] &["budget"], "";
    BUDGET_ENTER "budget/enter" "" ["instant" "budget" "places"] &["passages"],
        "most passage hold_us";
    BUDGET_LEAVE "budget/leave" " flags=allow-oom" ["instant" "budget"] &["passages"], "passage+";
}

impl Command {
    #[cfg_attr(not(debug_assertions), allow(dead_code, reason = "debug builds compare calls"))]
    /// Whether arguments of these names, in this order, are what the script takes.
    pub(crate) fn takes(&self, names: &[&str]) -> bool {
        let mut left = names;
        for (group, least, most) in groups(self.args) {
            let mut times = 0;
            while times < most && left.starts_with(&group) {
                left = &left[group.len()..];
                times += 1;
            }
            if times < least {
                return false;
            }
        }
        left.is_empty()
    }
}

#[cfg_attr(not(debug_assertions), allow(dead_code, reason = "debug builds compare calls"))]
/// Names that go together, and how often they may come: `a`, `a*`, `(a b)+`. A `?` behind a name
/// says that its value may be empty.
fn groups(args: &str) -> Vec<(Vec<&str>, usize, usize)> {
    let (mut groups, mut open) = (Vec::new(), None::<Vec<&str>>);
    for word in args.split_whitespace() {
        let often = match word.chars().last() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            _ => (1, 1),
        };
        let name = word.trim_matches(|c| "()*+?".contains(c));
        match (&mut open, word.starts_with('('), word.contains(')')) {
            (_, true, false) => open = Some(vec![name]),
            (Some(group), _, false) => group.push(name),
            (Some(group), _, true) => {
                group.push(name);
                groups.push((std::mem::take(group), often.0, often.1));
                open = None;
            }
            _ => groups.push((vec![name], often.0, often.1)),
        }
    }
    groups
}
