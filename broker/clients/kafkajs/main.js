// Goes through what kafkajs asks of a node, without groups, and ends with exit code 1 at the first answer
// that is wrong. Its consumer exists with a group alone, so records are read with the requests below it.
// usage: node main.js HOST:PORT RECORDS
const assert = require('node:assert/strict')
const { Kafka, CompressionTypes, ConfigResourceTypes, logLevel } = require('kafkajs')

const [address, count] = [process.argv[2], Number(process.argv[3])]
const kafka = new Kafka({ brokers: [address], clientId: 'kafkajs', logLevel: logLevel.ERROR, retry: { retries: 2 } })

// fetchAll reads [from, end) of a partition.
async function fetchAll(cluster, topic, partition, from, end) {
  const all = []
  const nodeId = cluster.findTopicPartitionMetadata(topic).find(p => p.partitionId === partition).leader
  const broker = await cluster.findBroker({ nodeId })
  while (from < end) {
    const { responses } = await broker.fetch({
      replicaId: -1,
      isolationLevel: 0,
      maxWaitTime: 1000,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(from), maxBytes: 1 << 20, currentLeaderEpoch: -1 }] }],
    })
    const { errorCode, messages } = responses[0].partitions[0]
    assert.equal(errorCode, 0)
    const fresh = messages.filter(m => Number(m.offset) >= from)
    assert.ok(fresh.length > 0, `nothing at offset ${from} of ${end}`)
    for (const m of fresh) {
      assert.equal(Number(m.offset), from)
      all.push(m)
      from++
    }
  }
  return all
}

async function codecs(cluster, admin) {
  for (const [name, compression, idempotent] of [
    ['none', CompressionTypes.None, false],
    ['gzip', CompressionTypes.GZIP, false],
    ['idempotent', CompressionTypes.GZIP, true],
  ]) {
    const topic = `kafkajs-${name}`
    const messages = []
    for (let i = 0; i < 100; i++) {
      messages.push({ key: `key ${i}`, value: `value ${i}`, headers: { origin: 'kafkajs', n: String(i) }, timestamp: String(1700000000000 + i) })
    }
    messages.push({ key: 'null', value: null }, { key: 'empty', value: '' })
    const producer = kafka.producer({ idempotent, maxInFlightRequests: idempotent ? 1 : undefined })
    await producer.connect()
    const [{ baseOffset, errorCode }] = await producer.send({ topic, acks: -1, compression, messages })
    assert.deepEqual([baseOffset, errorCode], ['0', 0])
    await producer.disconnect()

    await cluster.addTargetTopic(topic)
    const got = await fetchAll(cluster, topic, 0, 0, messages.length)
    got.forEach((m, i) => {
      assert.equal(m.key.toString(), messages[i].key)
      assert.equal(m.value === null ? null : m.value.toString(), messages[i].value)
      if (i < 100) {
        assert.equal(m.headers.n.toString(), String(i))
        assert.equal(m.timestamp, messages[i].timestamp)
      }
    })
    const at = await admin.fetchTopicOffsetsByTimestamp(topic, 1700000000042)
    assert.equal(at[0].offset, '42')
  }
}

async function topics(cluster, admin) {
  const topic = 'kafkajs-admin'
  assert.equal(await admin.createTopics({ topics: [{ topic, numPartitions: 3, configEntries: [{ name: 'retention.ms', value: '3600000' }] }] }), true)
  assert.equal(await admin.createTopics({ topics: [{ topic, numPartitions: 3 }] }), false) // it exists
  const described = await admin.fetchTopicMetadata({ topics: [topic] })
  assert.deepEqual(described.topics[0].partitions.map(p => p.partitionId).sort(), [0, 1, 2])
  const { resources } = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
  assert.equal(resources[0].configEntries.find(e => e.configName === 'retention.ms').configValue, '3600000')
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  assert.equal((await admin.fetchTopicOffsets(topic)).length, 5)

  const producer = kafka.producer()
  await producer.connect()
  await producer.send({ topic, messages: Array.from({ length: 10 }, (_, i) => ({ partition: 4, value: String(i) })) })
  await producer.disconnect()
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 4, offset: '7' }] })
  const offsets = (await admin.fetchTopicOffsets(topic)).find(p => p.partition === 4)
  assert.deepEqual([offsets.low, offsets.high], ['7', '10'])
  await cluster.addTargetTopic(topic)
  assert.deepEqual((await fetchAll(cluster, topic, 4, 7, 10)).map(m => m.value.toString()), ['7', '8', '9'])
  await admin.deleteTopics({ topics: [topic] })
  assert.ok(!(await admin.listTopics()).includes(topic))
}

async function many(cluster) {
  const topic = 'kafkajs-many'
  const producer = kafka.producer({ idempotent: true })
  await producer.connect()
  const size = 5000
  const value = i => `${i} ${'x'.repeat(i % 97)}`
  for (let at = 0; at < count; at += size) {
    const messages = Array.from({ length: Math.min(size, count - at) }, (_, i) => ({ partition: 0, value: value(at + i) }))
    await producer.send({ topic, acks: -1, messages })
  }
  await producer.disconnect()
  await cluster.addTargetTopic(topic)
  const got = await fetchAll(cluster, topic, 0, 0, count)
  got.forEach((m, i) => assert.equal(m.value.toString(), value(i)))
}

async function main() {
  const createCluster = Object.getOwnPropertySymbols(kafka).find(s => s.description === 'private:Kafka:createCluster')
  const cluster = kafka[createCluster]({})
  const admin = kafka.admin()
  await cluster.connect()
  await admin.connect()
  await codecs(cluster, admin)
  await topics(cluster, admin)
  await many(cluster)
  await admin.disconnect()
  await cluster.disconnect()
  console.log(`kafkajs: ${count} records in and out, the same`)
}

main().catch(e => {
  console.error(e)
  process.exit(1)
})
