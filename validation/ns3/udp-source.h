// SPDX-License-Identifier: MIT OR GPL-2.0-only
// A station that never runs dry: datagrams of 1472 bytes, 1500 with their headers.
#ifndef WAKEAI_NS3_UDP_SOURCE_H
#define WAKEAI_NS3_UDP_SOURCE_H

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <map>

class UdpSource
{
  public:
    // Keeps `queue`, that of `from`, filled with datagrams for `to`.
    UdpSource(ns3::Ptr<ns3::Node> from,
              ns3::Ptr<ns3::WifiMacQueue> queue,
              const ns3::Address& to);
    void Start() { Fill(); }

  private:
    void Fill();
    ns3::Ptr<ns3::Socket> m_socket;
    ns3::Ptr<ns3::WifiMacQueue> m_queue;
};

// Counts what arrives at a port, from a certain time on.
class UdpSink
{
  public:
    UdpSink(ns3::Ptr<ns3::Node> node, uint16_t port);
    void BeginMeasuring()
    {
        m_bytes = 0;
        m_bytesOf.clear();
    }
    uint64_t Bytes() const { return m_bytes; }
    // Those of one sender.
    uint64_t BytesOf(ns3::Ipv4Address from) const
    {
        auto found = m_bytesOf.find(from);
        return found == m_bytesOf.end() ? 0 : found->second;
    }

  private:
    void Receive(ns3::Ptr<ns3::Socket> socket);
    ns3::Ptr<ns3::Socket> m_socket;
    uint64_t m_bytes = 0;
    std::map<ns3::Ipv4Address, uint64_t> m_bytesOf;
};

#endif
