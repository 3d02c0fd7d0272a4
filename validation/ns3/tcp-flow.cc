// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "tcp-flow.h"

#include "rfc-cubic.h"

using namespace ns3;

namespace
{
const uint32_t MSS = 1448; // with the timestamp option a full packet is 1500 bytes
const uint32_t BUFFER = 4 << 20;
const uint32_t CHUNK = 45 * MSS; // whole segments, so that none leaves half full
const uint16_t FIRST_PORT = 10000;
} // namespace

void
SetTcpDefaults()
{
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(BUFFER));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    // Nobody gives up: as often as Linux would try, and more.
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(6));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(30));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
}

template <class Algorithm>
void
Watched<Algorithm>::CwndEvent(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCAEvent_t event)
{
    if (event == TcpSocketState::CA_EVENT_LOSS && flow)
        flow->HandleTimeout(tcb->m_cWnd, tcb->m_segmentSize);
    Algorithm::CwndEvent(tcb, event);
}

template <class Algorithm>
Ptr<TcpCongestionOps>
Watched<Algorithm>::Fork()
{
    return CopyObject<Watched<Algorithm>>(this);
}

namespace
{

template <class Algorithm>
Ptr<TcpCongestionOps>
WatchedBy(TcpFlow* flow)
{
    Ptr<Watched<Algorithm>> algorithm = CreateObject<Watched<Algorithm>>();
    algorithm->flow = flow;
    return algorithm;
}

Ptr<TcpCongestionOps>
Algorithm(const std::string& name, TcpFlow* flow)
{
    if (name == "reno")
        return WatchedBy<TcpLinuxReno>(flow);
    return name == "cubic" ? WatchedBy<TcpCubic>(flow) : WatchedBy<RfcCubic>(flow);
}

} // namespace

void (*TcpFlow::onDone)() = nullptr;

TcpFlow::TcpFlow(uint32_t number,
                 Ptr<Node> from,
                 Ptr<Node> to,
                 Ipv4Address address,
                 const Options& options,
                 std::ofstream* events)
    : m_number(number),
      m_from(from),
      m_to(InetSocketAddress(address, FIRST_PORT + number)),
      m_congestion(options.congestion),
      m_size(options.Sized() ? options.Bytes() : 0),
      m_left(options.Sized() ? options.Bytes() : UINT64_MAX),
      m_events(events)
{
    m_listener = Socket::CreateSocket(to, TcpSocketFactory::GetTypeId());
    m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), FIRST_PORT + number));
    m_listener->Listen();
    m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  MakeCallback(&TcpFlow::Accept, this));
}

void
TcpFlow::Start()
{
    m_started = Simulator::Now();
    m_lastArrival = m_started;
    m_sender = Socket::CreateSocket(m_from, TcpSocketFactory::GetTypeId());
    Ptr<TcpSocketBase> base = DynamicCast<TcpSocketBase>(m_sender);
    base->SetCongestionControlAlgorithm(Algorithm(m_congestion, this));
    base->TraceConnectWithoutContext("Tx", MakeCallback(&TcpFlow::Sent, this));
    m_sender->SetConnectCallback(MakeCallback(&TcpFlow::Connected, this),
                                 MakeNullCallback<void, Ptr<Socket>>());
    m_sender->SetSendCallback(MakeCallback(&TcpFlow::Fill, this));
    m_sender->Bind();
    m_sender->Connect(m_to);
    if (m_events)
    {
        base->TraceConnectWithoutContext("CongestionWindow",
                                         MakeCallback(&TcpFlow::Window, this));
        base->TraceConnectWithoutContext("RTT", MakeCallback(&TcpFlow::RoundTrip, this));
        Simulator::Schedule(MilliSeconds(100), &TcpFlow::Sample, this);
    }
}

void
TcpFlow::Connected(Ptr<Socket> socket)
{
    m_established = Simulator::Now();
    Fill(socket, socket->GetTxAvailable());
}

void
TcpFlow::Fill(Ptr<Socket> socket, uint32_t)
{
    if (!m_established.IsStrictlyPositive() || m_closed)
        return;
    while (m_left > 0)
    {
        const uint64_t chunk = std::min<uint64_t>(m_left, CHUNK);
        if (socket->GetTxAvailable() < chunk || socket->Send(Create<Packet>(chunk)) < 0)
            return;
        m_left -= chunk;
    }
    m_closed = true;
    socket->Close();
}

void
TcpFlow::Accept(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&TcpFlow::Receive, this));
}

void
TcpFlow::Receive(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (packet->GetSize() == 0)
            break;
        m_received += packet->GetSize();
        m_stall = std::max(m_stall, Simulator::Now() - m_lastArrival);
        m_lastArrival = Simulator::Now();
    }
    if (m_size > 0 && m_received >= m_size && !Done())
    {
        m_done = Simulator::Now();
        Log("done", CompletionSeconds());
        if (onDone)
            onDone();
    }
}

void
TcpFlow::Sent(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    if (header.GetFlags() & TcpHeader::SYN)
    {
        ++m_syns;
        Log("syn", m_syns);
    }
}

void
TcpFlow::HandleTimeout(uint32_t cwnd, uint32_t mss)
{
    ++m_timeouts;
    Log("timeout", static_cast<double>(cwnd) / mss);
}

void
TcpFlow::Log(const char* what, double value) const
{
    if (m_events)
        *m_events << Simulator::Now().GetSeconds() << ',' << m_number << ',' << what << ','
                  << value << '\n';
}

void
TcpFlow::Sample()
{
    Log("received", m_received);
    Log("cwnd", static_cast<double>(m_cwnd) / MSS);
    Log("rtt_ms", m_rttMs);
    if (!Done())
        Simulator::Schedule(MilliSeconds(100), &TcpFlow::Sample, this);
}
