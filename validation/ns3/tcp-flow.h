// SPDX-License-Identifier: MIT OR GPL-2.0-only
// One TCP connection: the sender opens it, sends, and closes it.
#ifndef WAKEAI_NS3_TCP_FLOW_H
#define WAKEAI_NS3_TCP_FLOW_H

#include "options.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

#include <fstream>

// CUBIC with HyStart, SACK, PRR, timestamps, 1448 bytes of payload, delayed ACK 2 segments or
// 40 ms, 4 MiB buffers, RTO from 0.2 s, SYN timeout 1 s: the defaults of every socket from here on.
void SetTcpDefaults();

class TcpFlow;

// Congestion control that tells its flow of every retransmission timeout. The trace of the congestion
// state does not: it is silent when a timeout follows a timeout.
template <class Algorithm>
class Watched : public Algorithm
{
  public:
    void CwndEvent(ns3::Ptr<ns3::TcpSocketState> tcb,
                   const ns3::TcpSocketState::TcpCAEvent_t event) override;
    ns3::Ptr<ns3::TcpCongestionOps> Fork() override;
    TcpFlow* flow = nullptr;
};

class TcpFlow
{
  public:
    TcpFlow(uint32_t number,
            ns3::Ptr<ns3::Node> from,
            ns3::Ptr<ns3::Node> to,
            ns3::Ipv4Address address,
            const Options& options,
            std::ofstream* events);

    void Start();
    // From now on received bytes count as goodput.
    void BeginMeasuring() { m_measuredFrom = m_received; }
    bool Done() const { return m_done.IsStrictlyPositive(); }

    // One timeout of the retransmission timer.
    void HandleTimeout(uint32_t cwnd, uint32_t mss);
    void Log(const char* what, double value) const;

    // From the start to the last byte with the receiver; negative where it did not finish.
    double CompletionSeconds() const { return Done() ? (m_done - m_started).GetSeconds() : -1; }
    double OpenSeconds() const
    {
        return m_established.IsStrictlyPositive() ? (m_established - m_started).GetSeconds() : -1;
    }
    uint64_t Received() const { return m_received; }
    uint64_t Measured() const { return m_received - m_measuredFrom; }
    uint32_t Timeouts() const { return m_timeouts; }
    uint32_t Syns() const { return m_syns; }
    // The longest time between two arrivals of data at the receiver, from the start on.
    double LongestStallSeconds() const { return m_stall.GetSeconds(); }

    // Called when a flow is complete.
    static void (*onDone)();

  private:
    void Accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
    void Receive(ns3::Ptr<ns3::Socket> socket);
    void Connected(ns3::Ptr<ns3::Socket> socket);
    void Fill(ns3::Ptr<ns3::Socket> socket, uint32_t available);
    void Sent(ns3::Ptr<const ns3::Packet> packet,
              const ns3::TcpHeader& header,
              ns3::Ptr<const ns3::TcpSocketBase> socket);
    void Sample();
    void Window(uint32_t, uint32_t now) { m_cwnd = now; }
    void RoundTrip(ns3::Time, ns3::Time now) { m_rttMs = now.GetSeconds() * 1e3; }

    uint32_t m_number;
    ns3::Ptr<ns3::Node> m_from;
    ns3::Address m_to;
    std::string m_congestion;
    uint64_t m_size;
    uint64_t m_left;
    bool m_closed = false;
    ns3::Ptr<ns3::Socket> m_listener;
    ns3::Ptr<ns3::Socket> m_sender;
    ns3::Time m_started;
    ns3::Time m_established;
    ns3::Time m_done;
    ns3::Time m_lastArrival;
    ns3::Time m_stall;
    uint64_t m_received = 0;
    uint64_t m_measuredFrom = 0;
    uint32_t m_timeouts = 0;
    uint32_t m_syns = 0;
    uint32_t m_cwnd = 0;
    double m_rttMs = 0;
    std::ofstream* m_events;
};

#endif
