//! The rights of the store's user.

use reqwest_lease::{PoolName, RedisStore, Rights};

use crate::acl::Role;
use crate::context::Context;
use crate::diagnosis::Diagnosis;
use crate::exit::Code;
use crate::failure::Failure;
use crate::shell::quoted;

/// Refuses a repair before anything is done by a user who could do half of it.
pub(super) async fn may_repair(store: &RedisStore, pool: &PoolName) -> Result<(), Failure> {
    // One who may not even ask is refused by what comes next.
    match store.rights(pool).await {
        Ok(Rights { lease: true, order: true, write_trail: true, .. }) | Err(_) => Ok(()),
        Ok(_) => Err(Failure::new(
            Code::REFUSED,
            "the store's user may not do this: a repair is an administrator's",
        )
        .with_hint("without --repair `doctor` tells what is wrong and changes nothing")),
    }
}

/// Tells what the user may do, and compares it with what it should.
pub(super) fn examine(
    rights: &Rights,
    role: Option<Role>,
    context: &Context,
    diagnosis: &mut Diagnosis,
) {
    let has = closest(rights);
    diagnosis.fact(
        "user",
        match has {
            Some(role) => format!("may do what a{} {} may", n(role), role.word()),
            None => "may not even read the pool".to_owned(),
        },
    );
    match role {
        Some(role) => compare(rights, role, context, diagnosis),
        None if rights.outside || rights.server => diagnosis.note(
            "user",
            "the user may do all on this server: so may every worker that logs in as it, and undo \
             orders; `reqwest-lease acl` prints users that may not",
        ),
        None => {}
    }
}

/// Compares what the user may do with what one of this role should.
fn compare(rights: &Rights, role: Role, context: &Context, diagnosis: &mut Diagnosis) {
    let mend = format!(
        "run the command of `reqwest-lease acl {} --namespace {}` for this user",
        role.word(),
        quoted(context.namespace())
    );
    let rights = table(rights, role);
    let those = |is: fn(&(bool, bool, &str)) -> bool| -> Vec<&str> {
        rights.iter().filter(|right| is(right)).map(|(_, _, what)| *what).collect()
    };
    let lacks = those(|(has, wanted, _)| !has && *wanted);
    if !lacks.is_empty() {
        let what =
            format!("as {} the user lacks the right to {}", role.word(), lacks.join(", to "));
        diagnosis.error("user", what, mend.clone());
    }
    let beyond = those(|(has, wanted, _)| *has && !wanted);
    if !beyond.is_empty() {
        let (n, word, may) = (n(role), role.word(), beyond.join(", "));
        let what = format!("the user is more than a{n} {word}: it may {may}");
        diagnosis.warning("user", what, mend);
    }
}

fn n(role: Role) -> &'static str {
    if role == Role::Worker { "" } else { "n" }
}

/// The largest role of which the user has all rights.
fn closest(rights: &Rights) -> Option<Role> {
    [Role::Administrator, Role::Worker, Role::Observer]
        .into_iter()
        .find(|role| table(rights, *role).iter().all(|(has, wanted, _)| *has || !*wanted))
}

/// Each right: whether the user has it, whether the role has it, and what it is for.
fn table(rights: &Rights, role: Role) -> [(bool, bool, &'static str); 8] {
    let administers = role == Role::Administrator;
    let works = role != Role::Observer;
    [
        (rights.read, true, "read the pool"),
        (rights.tokens, works, "see tokens of leases"),
        (rights.lease, works, "take and give back leases"),
        (rights.order, administers, "give orders"),
        (rights.read_trail, role != Role::Worker, "read the trail of orders"),
        (rights.write_trail, administers, "write the trail of orders"),
        (rights.outside, false, "reach other keys"),
        (rights.server, false, "administer the server"),
    ]
}
