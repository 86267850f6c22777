//! An inventory that is followed through its files, however they are replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use http::StatusCode;
use http::header::{LOCATION, PROXY_AUTHORIZATION};
use reqwest_lease::{
    Endpoint, EndpointId, Error, Inventory, InventorySource, LeaseMiddleware, Pool, PoolName,
    Snapshot, StandingOrder, State,
};
use reqwest_middleware::ClientWithMiddleware;
use tempfile::TempDir;

use crate::support::eventually;
use crate::support::origin::{Origin, Visit, text};

/// A folder with an inventory in it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a whole file beside, and renames it over.
    fn put(&self, name: &str, text: &str) {
        let beside = self.path("beside");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, self.path(name)).unwrap();
    }

    async fn watched(&self) -> Pool {
        watched(&self.path("proxies.toml")).await
    }
}

async fn watched(file: &Path) -> Pool {
    let inventory = Inventory::from_file(file).await.unwrap();
    let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).build().await.unwrap();
    pool.watch_inventory().await.unwrap();
    // From here on only events lead to a reload.
    eventually("the first reload", || (pool.counts().reloads > 0).then_some(())).await;
    pool
}

/// An inventory of endpoints with these names, of this version.
fn inventory(version: u64, names: &[&str]) -> String {
    let endpoint =
        |name: &&str| format!("[[endpoint]]\nid = \"{name}\"\nurl = \"http://127.0.0.1:1\"\n");
    format!("version = {version}\n{}", names.iter().map(endpoint).collect::<String>())
}

fn ids(snapshot: &Snapshot) -> Vec<String> {
    snapshot.iter().map(|endpoint| endpoint.id().to_string()).collect()
}

async fn reaches(pool: &Pool, version: u64) -> Vec<String> {
    let is_there = || {
        let snapshot = pool.inventory().snapshot();
        (snapshot.version() == Some(version)).then(|| ids(&snapshot))
    };
    eventually(&format!("version {version}"), is_there).await
}

#[tokio::test]
async fn a_file_that_is_written_or_renamed_over_is_read_again() {
    let folder = Folder::new();
    folder.put("proxies.toml", &inventory(1, &["a"]));
    let pool = folder.watched().await;
    fs::write(folder.path("proxies.toml"), inventory(2, &["a", "b"])).unwrap();
    assert_eq!(reaches(&pool, 2).await, ["a", "b"]);
    for version in 3..6 {
        folder.put("proxies.toml", &inventory(version, &["b"]));
        assert_eq!(reaches(&pool, version).await, ["b"]);
    }
    fs::remove_file(folder.path("proxies.toml")).unwrap();
    eventually("a failure", || (pool.counts().reloads_failed > 0).then_some(())).await;
    folder.put("proxies.toml", &inventory(6, &["c"]));
    assert_eq!(reaches(&pool, 6).await, ["c"]);
    let members = pool.list().await.unwrap();
    let stays = members.iter().filter(|member| member.order != Some(StandingOrder::Remove));
    assert_eq!(stays.map(|member| member.endpoint.as_str()).collect::<Vec<_>>(), ["c"]);
}

/// As a mounted secret or configuration is replaced: a new folder, and a link that is turned to it.
#[cfg(unix)]
#[tokio::test]
async fn a_link_that_is_turned_to_another_folder_is_followed() {
    use std::os::unix::fs::symlink;
    let mount = Folder::new();
    let turn = |version: u64, names: &[&str]| {
        let (name, last) = (format!("..{version}"), format!("..{}", version - 1));
        fs::create_dir(mount.path(&name)).unwrap();
        fs::write(mount.path(&name).join("proxies.toml"), inventory(version, names)).unwrap();
        symlink(&name, mount.path("..data_tmp")).unwrap();
        fs::rename(mount.path("..data_tmp"), mount.path("..data")).unwrap();
        let _ = fs::remove_dir_all(mount.path(&last));
    };
    turn(1, &["a"]);
    symlink("..data/proxies.toml", mount.path("proxies.toml")).unwrap();
    let pool = mount.watched().await;
    for version in 2..6 {
        turn(version, &["a", "b"]);
        assert_eq!(reaches(&pool, version).await, ["a", "b"]);
    }
    assert_eq!(pool.counts().reloads_failed, 0);
}

fn with_password(version: u64, port: u16, file: &str) -> String {
    format!(
        "version = {version}\n[[endpoint]]\nid = \"a\"\nurl = \"http://127.0.0.1:{port}\"\n\
         username = \"u\"\npassword = {{ file = \"{file}\" }}\n"
    )
}

#[tokio::test]
async fn password_files_are_watched_also_those_that_a_reload_brings() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    folder.put("one.secret", "one");
    folder.put("proxies.toml", &with_password(1, 1, "one.secret"));
    let pool = folder.watched().await;
    let inventory = pool.inventory();
    let grows = async |what: &str, change: &dyn Fn()| {
        let before = inventory.generation();
        change();
        eventually(what, || (inventory.generation() > before).then_some(())).await;
    };
    grows("another password", &|| folder.put("one.secret", "two")).await;

    // It names a file that is not there yet, in a folder that nobody has watched.
    let other = elsewhere.path("other.secret");
    folder.put("proxies.toml", &with_password(2, 1, other.to_str().unwrap()));
    eventually("a failure", || (pool.counts().reloads_failed > 0).then_some(())).await;
    assert_eq!(inventory.snapshot().version(), Some(1));
    elsewhere.put("other.secret", "three");
    reaches(&pool, 2).await;
    grows("another password there", &|| elsewhere.put("other.secret", "four")).await;
}

/// Keeps what is logged on this thread.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Logged {
    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let logged = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
            .with_writer(move || logged.clone());
        tracing::subscriber::set_default(subscriber.finish())
    }

    fn lines(&self, with: &str) -> usize {
        let logged = self.0.lock().unwrap();
        String::from_utf8_lossy(&logged).lines().filter(|line| line.contains(with)).count()
    }
}

impl std::io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_broken_file_keeps_what_was_there_and_says_so_once() {
    let (folder, logged) = (Folder::new(), Logged::default());
    folder.put("proxies.toml", &inventory(1, &["a"]));
    let pool = folder.watched().await;
    let fails = async |text: &str| {
        let old = pool.inventory().snapshot();
        let before = pool.counts().reloads_failed;
        folder.put("proxies.toml", text);
        eventually("a failure", || (pool.counts().reloads_failed > before).then_some(())).await;
        let now = pool.inventory().snapshot();
        assert_eq!((now.version(), ids(&now)), (old.version(), ids(&old)));
    };
    let told = || logged.lines("the inventory stays as it was");
    // A place that logs for the first time while a log begins may be missed by it.
    fails("version = 'none'").await;
    let _guard = logged.start();
    fails("[[endpoint]]\nid = 'a'\nurl = 'ftp://c4n4ry'\n").await;
    assert_eq!(told(), 1);
    fails("[[endpoint]]\nid = 'a'\nurl = 'ftp://c4n4ry'\n# the same fault\n").await;
    assert_eq!(told(), 1);
    fails("").await;
    assert_eq!(told(), 2, "another fault");
    folder.put("proxies.toml", &inventory(2, &["a", "b"]));
    assert_eq!(reaches(&pool, 2).await, ["a", "b"]);
    fails("").await;
    assert_eq!(told(), 3, "it had been mended");
    assert_eq!(logged.lines("c4n4ry"), 0);
}

/// A source that fails for a time, and for no reason that a look at its file would show.
#[derive(Clone)]
struct Moody {
    file: PathBuf,
    version: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
}

#[async_trait]
impl InventorySource for Moody {
    async fn load(&self) -> Result<Snapshot, Error> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::inventory("too many open files"));
        }
        let endpoint = Endpoint::new(EndpointId::new("a").unwrap(), "http://127.0.0.1:1", None);
        Snapshot::new([endpoint.unwrap()], Some(self.version.load(Ordering::SeqCst) as u64))
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.file.clone()]
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_read_again_though_nothing_changes() {
    let folder = Folder::new();
    folder.put("proxies.toml", "");
    for fails in [true, false] {
        let moody = Moody {
            file: folder.path("proxies.toml"),
            version: Arc::new(AtomicUsize::new(1)),
            fails: Arc::default(),
        };
        let inventory = Inventory::open(moody.clone()).await.unwrap();
        let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).build().await.unwrap();
        moody.fails.store(fails, Ordering::SeqCst);
        pool.watch_inventory().await.unwrap();
        let counted = || {
            let counts = pool.counts();
            (counts.reloads + counts.reloads_failed > 0).then_some(())
        };
        eventually("the first reload", counted).await;
        moody.version.store(2, Ordering::SeqCst);
        moody.fails.store(false, Ordering::SeqCst);
        if fails {
            assert_eq!(reaches(&pool, 2).await, ["a"]);
        } else {
            // The twin: what went well is not.
            tokio::time::sleep(Duration::from_secs(300)).await;
            assert_eq!(
                (pool.inventory().snapshot().version(), pool.counts().reloads),
                (Some(1), 1)
            );
        }
        pool.shutdown().await;
    }
}

#[tokio::test]
async fn the_watch_ends_with_the_pool_or_its_shutdown() {
    let folder = Folder::new();
    folder.put("proxies.toml", &inventory(1, &["a"]));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let pool = folder.watched().await;
    let watched = tasks();
    pool.watch_inventory().await.unwrap();
    eventually("the first watch's end", || (tasks() <= watched).then_some(())).await;
    pool.shutdown().await;
    eventually("the watch's end", || (tasks() < watched).then_some(())).await;
    assert!(pool.watch_inventory().await.is_err(), "it is closed");
    drop(pool);
    eventually("the end of all tasks", || (tasks() == before).then_some(())).await;

    let pool = folder.watched().await;
    drop(pool);
    eventually("the end without a shutdown", || (tasks() == before).then_some(())).await;
}

fn client(pool: &Pool) -> ClientWithMiddleware {
    LeaseMiddleware::builder(pool.clone()).build().unwrap().into_client()
}

async fn fetch(client: &ClientWithMiddleware, url: &str) {
    let response = client.get(url).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.bytes().await.unwrap();
}

#[tokio::test]
async fn a_reload_leaves_the_connections_of_other_endpoints_alone() {
    let (folder, proxies) = (Folder::new(), join_all((0..2).map(|_| hello())).await);
    let text = |version: u64| {
        let endpoint = |(name, proxy): (&str, &Origin)| {
            let port = proxy.address().port();
            with_password(version, port, &format!("{name}.secret"))
                .replace(&format!("version = {version}\n"), "")
                .replace("\"a\"", &format!("{name:?}"))
        };
        let all: String = ["a", "b"].into_iter().zip(&proxies).map(endpoint).collect();
        format!("version = {version}\n{all}")
    };
    folder.put("a.secret", "one");
    folder.put("b.secret", "one");
    folder.put("proxies.toml", &text(1));
    let pool = folder.watched().await;
    let client = client(&pool);
    let connections = || [0, 1].map(|nth: usize| proxies[nth].connections().len());
    for _ in 0..4 {
        fetch(&client, "http://site.test/").await;
    }
    assert_eq!(connections(), [1, 1]);
    folder.put("b.secret", "two");
    eventually("the reload", || (pool.inventory().generation() > 1).then_some(())).await;
    for _ in 0..4 {
        fetch(&client, "http://site.test/").await;
    }
    assert_eq!(connections(), [1, 2]);
}

/// Something that answers as a forward proxy and its sites would.
async fn hello() -> Origin {
    Origin::http(|_| text(StatusCode::OK, "hello")).await
}

/// The number at the end of the password that a request came with.
fn password(visit: &Visit) -> usize {
    let said = visit.headers[PROXY_AUTHORIZATION].to_str().unwrap().trim_start_matches("Basic ");
    let login = String::from_utf8(STANDARD.decode(said).unwrap()).unwrap();
    login.split_once(":p").unwrap().1.parse().unwrap()
}

/// Sixty-four tasks that fetch pages through eight endpoints, while their password changes.
///
/// Each page's name is the newest password that was in force when its request began.
struct Rotation {
    folder: Folder,
    proxy: Origin,
    pool: Pool,
    newest: Arc<AtomicUsize>,
}

const TASKS: usize = 64;
const ROTATIONS: usize = 5;

impl Rotation {
    async fn start() -> Self {
        let (folder, proxy) = (Folder::new(), hello().await);
        folder.put("gw.secret", "p0");
        let text = format!(
            "[[endpoint]]\nid = \"gw\"\nurl = \"http://{}\"\nusername = \"{{session}}\"\n\
             sessions = 8\npassword = {{ file = \"gw.secret\" }}\n",
            proxy.address()
        );
        folder.put("proxies.toml", &text);
        let file = folder.path("proxies.toml");
        let inventory = Inventory::from_file(file).await.unwrap();
        let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).build().await.unwrap();
        Self { folder, proxy, pool, newest: Arc::default() }
    }

    /// Fetches and rotates; `rotated` returns when the new password is in force.
    async fn run(&self, rotated: impl AsyncFn(usize)) {
        let fetched = Arc::new(AtomicUsize::new(0));
        let client = client(&self.pool);
        let tasks = (0..TASKS).map(|_| {
            let (client, newest) = (client.clone(), Arc::clone(&self.newest));
            let fetched = Arc::clone(&fetched);
            tokio::spawn(async move {
                let mut begun = 0;
                while begun < ROTATIONS {
                    begun = newest.load(Ordering::SeqCst);
                    fetch(&client, &format!("http://site.test/{begun}")).await;
                    fetched.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for nth in 1..=ROTATIONS {
            let enough = fetched.load(Ordering::SeqCst) + 3 * TASKS;
            eventually("some pages", || (fetched.load(Ordering::SeqCst) > enough).then_some(()))
                .await;
            self.folder.put("gw.secret", &format!("p{nth}"));
            rotated(nth).await;
            self.newest.store(nth, Ordering::SeqCst);
        }
        for task in tasks {
            task.await.unwrap();
        }
    }

    /// Requests that went out with a password older than the one in force when they began.
    fn late(&self) -> usize {
        let visits = self.proxy.visits();
        assert!(visits.len() > ROTATIONS * 3 * TASKS);
        let begun = |visit: &Visit| visit.path.trim_start_matches('/').parse::<usize>().unwrap();
        assert!(
            visits.iter().any(|visit| password(visit) == 0)
                && visits.iter().any(|visit| begun(visit) == ROTATIONS)
        );
        visits.iter().filter(|visit| password(visit) < begun(visit)).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_reload_no_request_goes_out_with_the_old_password() {
    let rotation = Rotation::start().await;
    rotation
        .run(async |_| {
            assert_eq!(rotation.pool.reload().await.unwrap().changed.len(), 8);
        })
        .await;
    assert_eq!(rotation.late(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_watched_change_no_request_goes_out_with_the_old_password() {
    let rotation = Rotation::start().await;
    rotation.pool.watch_inventory().await.unwrap();
    let inventory = rotation.pool.inventory();
    rotation
        .run(async |nth| {
            let is_there = || (inventory.generation() == nth as u64 + 1).then_some(());
            eventually("the new password", is_there).await;
        })
        .await;
    assert_eq!(rotation.late(), 0);
}

/// The twin: nobody reloads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_a_reload_the_old_password_is_seen_to_go_out() {
    let rotation = Rotation::start().await;
    rotation.run(async |_| {}).await;
    assert!(rotation.late() > 0);
}

/// A lease that is kept along a redirect was granted before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_redirect_after_a_reload_is_followed_with_the_new_password() {
    let (reloaded, wait) = std::sync::mpsc::channel();
    let wait = Mutex::new(wait);
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let proxy = Origin::http(move |visit| {
        if visit.path == "/arrived" {
            return text(StatusCode::OK, "hello");
        }
        seen.fetch_add(1, Ordering::SeqCst);
        let () = tokio::task::block_in_place(|| wait.lock().unwrap().recv()).unwrap();
        let mut moved = text(StatusCode::FOUND, "");
        moved.headers_mut().insert(LOCATION, "/arrived".parse().unwrap());
        moved
    })
    .await;
    let folder = Folder::new();
    folder.put("gw.secret", "p0");
    folder.put("proxies.toml", &with_password(1, proxy.address().port(), "gw.secret"));
    let inventory = Inventory::from_file(folder.path("proxies.toml")).await.unwrap();
    let pool = Pool::builder(PoolName::new("vn").unwrap(), inventory).build().await.unwrap();
    let client = client(&pool);
    let request = tokio::spawn(async move { fetch(&client, "http://site.test/").await });
    eventually("the first hop", || (asked.load(Ordering::SeqCst) == 1).then_some(())).await;
    folder.put("gw.secret", "p1");
    pool.reload().await.unwrap();
    reloaded.send(()).unwrap();
    request.await.unwrap();
    let passwords: Vec<_> = proxy.visits().iter().map(password).collect();
    assert_eq!(passwords, [0, 1]);
    let state = pool.list().await.unwrap();
    assert!(matches!(state[0].state, State::Ready), "{:?}", state[0]);
    assert_eq!(state[0].endpoint, EndpointId::new("a").unwrap());
}
