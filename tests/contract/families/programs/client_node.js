// The JavaScript client, @kubernetes/client-node.
const k8s = require('@kubernetes/client-node');

const [kubeconfig, ns] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const found = {};
const thing = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 't', namespace: ns } };

async function feature(name, question) {
  try {
    await question();
    found[name] = 'yes';
  } catch (error) {
    found[name] = `${error.name}: ${error.message}`.slice(0, 400);
  }
}

function body(name, data) {
  return { metadata: { name, labels: { app: 'family' } }, data };
}

function check(holds, what) {
  if (!holds) throw new Error(what);
}

function patch(contents, type) {
  const options = k8s.setHeaderOptions('Content-Type', type);
  return core.patchNamespacedConfigMap({ name: 'c0', namespace: ns, body: contents }, options);
}

async function main() {
  await feature('create and read', async () => {
    for (const n of [0, 1, 2]) {
      await core.createNamespacedConfigMap({ namespace: ns, body: body(`c${n}`, { k: 'v' }) });
    }
    const read = await core.readNamespacedConfigMap({ name: 'c0', namespace: ns });
    check(read.data.k === 'v', 'the data is another');
  });
  await feature('list by label', async () => {
    const listed = await core.listNamespacedConfigMap({ namespace: ns, labelSelector: 'app=family' });
    check(listed.items.length === 3, `${listed.items.length} items`);
  });
  await feature('pages', async () => {
    let names = [], token;
    do {
      const page = await core.listNamespacedConfigMap({ namespace: ns, limit: 2, _continue: token });
      names = names.concat(page.items.map((item) => item.metadata.name));
      token = page.metadata._continue;
    } while (token);
    check(['c0', 'c1', 'c2'].every((name) => names.includes(name)), names.join());
  });
  await feature('merge patch', async () => {
    const made = await patch({ data: { merge: 'yes' } }, k8s.PatchStrategy.MergePatch);
    check(made.data.merge === 'yes', 'not patched');
  });
  await feature('JSON patch', async () => {
    const made = await patch([{ op: 'replace', path: '/data/json', value: 'yes' }], k8s.PatchStrategy.JsonPatch);
    check(made.data.json === 'yes', 'not patched');
  });
  await feature('strategic merge patch', async () => {
    const made = await patch({ data: { strategic: 'yes' } }, k8s.PatchStrategy.StrategicMergePatch);
    check(made.data.strategic === 'yes', 'not patched');
  });
  await feature('server-side apply', async () => {
    const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied', namespace: ns }, data: { a: 'b' } };
    const made = await objects.patch(applied, undefined, undefined, 'family', true, k8s.PatchStrategy.ServerSideApply);
    check(made.metadata.managedFields[0].operation === 'Apply', 'not applied');
  });
  await feature('watch', async () => {
    const since = (await core.listNamespacedConfigMap({ namespace: ns })).metadata.resourceVersion;
    await core.createNamespacedConfigMap({ namespace: ns, body: body('watched', {}) });
    const path = `/api/v1/namespaces/${ns}/configmaps`;
    await new Promise((resolve, reject) => {
      let request;
      const late = setTimeout(() => reject(new Error('no event came')), 10000);
      new k8s.Watch(config)
        .watch(path, { resourceVersion: since }, (kind, object) => {
          clearTimeout(late);
          if (request) request.abort();
          if (kind === 'ADDED' && object.metadata.name === 'watched') resolve();
          else reject(new Error(`${kind} ${object.metadata.name}`));
        }, () => {})
        .then((opened) => { request = opened; }, reject);
    });
  });
  await feature('conflicts', async () => {
    const stale = await core.readNamespacedConfigMap({ name: 'c0', namespace: ns });
    await patch({ data: { x: 'y' } }, k8s.PatchStrategy.MergePatch);
    const code = await core.replaceNamespacedConfigMap({ name: 'c0', namespace: ns, body: stale })
      .then(() => 200, (error) => error.code);
    check(code === 409, `${code}`);
  });
  await feature('what is missing', async () => {
    const code = await core.readNamespacedConfigMap({ name: 'missing', namespace: ns })
      .then(() => 200, (error) => error.code);
    check(code === 404, `${code}`);
  });
  await feature('custom objects', async () => {
    await objects.create({ ...thing, spec: { size: 1 } });
    const made = await objects.patch(
      { ...thing, spec: { size: 2 } }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
    check(made.spec.size === 2, 'not patched');
  });
  await feature('tokens', async () => {
    await core.createNamespacedServiceAccount({ namespace: ns, body: { metadata: { name: 'family' } } });
    const made = await core.createNamespacedServiceAccountToken(
      { name: 'family', namespace: ns, body: { spec: { audiences: [], expirationSeconds: 600 } } });
    check(made.status.token, 'no token');
  });
  await feature('leases', async () => {
    const leases = config.makeApiClient(k8s.CoordinationV1Api);
    await leases.createNamespacedLease(
      { namespace: ns, body: { metadata: { name: 'family' }, spec: { holderIdentity: 'me' } } });
    const read = await leases.readNamespacedLease({ name: 'family', namespace: ns });
    check(read.spec.holderIdentity === 'me', 'another holder');
  });
  await feature('delete a collection', async () => {
    await core.deleteCollectionNamespacedConfigMap({ namespace: ns, labelSelector: 'app=family' });
    const listed = await core.listNamespacedConfigMap({ namespace: ns, labelSelector: 'app=family' });
    check(listed.items.length === 0, `${listed.items.length} items`);
  });
  console.log(JSON.stringify(found));
  process.exit(0);
}

main();
