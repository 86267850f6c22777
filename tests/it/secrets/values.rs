//! What can be printed: inventories, pools, names, and the errors of making them.

use reqwest_lease::{
    Budget, Budgets, DefaultJudge, Endpoint, EndpointId, Inventory, MemoryStore, Pool, PoolName,
    Secret, Sender, Site, Token,
};

use super::{PASSWORD, PASSWORD_CORE, USER, USER_CORE, tell};

/// Everything that can be had of a pool.
pub(super) async fn pool(pool: &Pool) {
    tell::value("pool", &(pool, pool.name(), pool.inventory(), pool.counts()));
    let snapshot = pool.inventory().snapshot();
    tell::value("inventory", &(&snapshot, snapshot.warnings()));
    for endpoint in snapshot.iter() {
        tell::value("endpoint", &(endpoint, endpoint.labels()));
    }
    tell::value("status", &(pool.status().await, pool.list().await));
    tell::value("others", &(MemoryStore::new(), DefaultJudge::default(), Sender));
    tell::value("secrets", &(Secret::new(PASSWORD), Token::random()));
}

/// Inventories that are refused, from a text and from a file that is read again.
pub(super) async fn inventories() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("inventory.toml");
    let password_file = directory.path().join("password");
    let good = "[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\nusername = 'Kz3CanaryUser5x'\n\
                password = { file = 'password' }\n";
    std::fs::write(&password_file, PASSWORD).unwrap();
    std::fs::write(&file, good).unwrap();
    let inventory = Inventory::from_file(&file).await.unwrap();
    let pool = Pool::builder(PoolName::new("told").unwrap(), inventory).build().await.unwrap();
    self::pool(&pool).await;
    for text in bad_inventories() {
        if let Err(error) = Inventory::from_toml(&text) {
            tell::error("inventory", &error);
        }
        std::fs::write(&file, &text).unwrap();
        match pool.reload().await {
            Ok(reloaded) => tell::value("reload", &reloaded),
            Err(error) => tell::error("reload", &error),
        }
    }
    std::fs::write(&file, good).unwrap();
    for password in [
        format!("{PASSWORD_CORE}\n{PASSWORD_CORE}"),
        format!("{PASSWORD_CORE}\u{7f}"),
        PASSWORD_CORE.repeat(10_000),
        String::new(),
    ] {
        std::fs::write(&password_file, password).unwrap();
        tell::error("reload", &pool.reload().await.unwrap_err());
    }
    std::fs::write(&password_file, [PASSWORD_CORE.as_bytes(), &[0xff]].concat()).unwrap();
    tell::error("reload", &pool.reload().await.unwrap_err());
    std::fs::remove_file(&password_file).unwrap();
    tell::error("reload", &pool.reload().await.unwrap_err());
    std::fs::remove_file(&file).unwrap();
    tell::error("reload", &pool.reload().await.unwrap_err());
}

/// A password in every place where it does not belong.
fn bad_inventories() -> Vec<String> {
    let (user, secret) = (USER_CORE, PASSWORD_CORE);
    let entry = |rest: &str| format!("[[endpoint]]\nid = 'a'\nurl = 'http://h:1'\n{rest}\n");
    let at = |url: &str| format!("[[endpoint]]\nid = 'a'\nurl = '{url}'\n");
    vec![
        at(&format!("ftp://{user}:{secret}@h:1")),
        at(&format!("http://{user}:{secret}@h:1")),
        at(&format!("http://{user}:{secret}/@h:1")),
        at(&format!("http://{user}:{secret}#@h:1")),
        at(&format!("http://{user}:{secret}@h:0")),
        at(&format!("http://{user}:{secret}%0A@h:1")),
        at(&format!("http://{user}:{secret}%FF@h:1")),
        at(&format!("h:1:{user}:{secret}")),
        at(&format!("{secret}://h:1")),
        format!("h:1:{user}:{secret}\n"),
        format!("http://{user}:{secret}@h:1\n"),
        format!("{secret} = 1\n"),
        format!("version = '{secret}'\n"),
        format!("version = {secret}\n"),
        entry(&format!("username = '{user}'\npassword = {secret}")),
        entry(&format!("username = '{user}'\npassword = '{secret}")),
        entry(&format!("username = '{user}'\npassword = \"{secret}\\q\"")),
        entry(&format!("username = '{user}'\npassword = ['{secret}']")),
        entry(&format!("username = '{user}'\npassword = {{ enw = '{secret}' }}")),
        entry(&format!("username = '{user}'\npassword = {{ {secret} = 'x' }}")),
        entry(&format!("username = '{user}:x'\npassword = '{secret}'")),
        entry(&format!("username = '{user}'\npassword = '{secret}'\npassword = '{secret}'")),
        entry(&format!("password = '{secret}'")),
        entry(&format!("{secret} = 1")),
        entry(&format!("weight = '{secret}'")),
        entry(&format!("tags = '{secret}'")),
        entry(&format!("username = '{user}'\nsessions = 3")),
        entry(&format!("[{secret}]")),
        format!("[[endpoint]]\nid = '{secret}!'\nurl = 'http://h:1'\n"),
        format!("endpoint = '{secret}'\n"),
        format!("[[endpoint]]\nurl = '{secret}'\n"),
    ]
}

pub(super) fn endpoints_and_names() {
    let id = || EndpointId::new("a").unwrap();
    for url in [
        format!("ftp://{USER_CORE}:{PASSWORD_CORE}@h:1"),
        format!("http://{USER_CORE}:{PASSWORD_CORE}#@h:1"),
        format!("{USER_CORE}:{PASSWORD_CORE}"),
        format!("http://{USER_CORE}:{PASSWORD_CORE}@h:1"),
    ] {
        match Endpoint::new(id(), &url, Some((USER, PASSWORD))) {
            Ok(endpoint) => tell::value("endpoint", &endpoint),
            Err(error) => tell::error("endpoint", &error),
        }
    }
    tell::value("endpoint", &Endpoint::new(id(), "http://h:1", Some((USER, PASSWORD))));
    for name in [format!("{PASSWORD_CORE}!"), PASSWORD_CORE.repeat(5)] {
        tell::error("name", &EndpointId::new(&name).unwrap_err());
        tell::error("name", &PoolName::new(&name).unwrap_err());
        tell::error("name", &reqwest_lease::Error::from(PoolName::new(&name).unwrap_err()));
    }
}

/// A URL where a host is wanted.
pub(super) fn budgets() {
    let url = format!("http://{USER_CORE}:{PASSWORD_CORE}@h:1/");
    let budget = Budget::per_second(1);
    for builder in [
        Budgets::builder().site(&url, budget),
        Budgets::builder().suffix(&url, budget),
        Budgets::builder().unlimited(&url),
    ] {
        tell::value("budgets", &builder);
        tell::error("budgets", &builder.build().unwrap_err());
    }
    tell::value("budgets", &Budgets::unlimited());
    let target = url.parse().unwrap();
    tell::value("budgets", &(Budgets::unlimited().explain(&target), Site::of(&target)));
}
