// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "udp-source.h"

#include "ns3/internet-module.h"

using namespace ns3;

namespace
{
const uint32_t DATAGRAM = 1472;
const uint32_t KEPT = 200; // more than two A-MPDUs, more than one frame every millisecond
} // namespace

UdpSource::UdpSource(Ptr<Node> from, Ptr<WifiMacQueue> queue, const Address& to)
    : m_queue(queue)
{
    m_socket = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
    m_socket->Connect(to);
}

void
UdpSource::Fill()
{
    for (uint32_t queued = m_queue->GetNPackets(); queued < KEPT; ++queued)
        m_socket->Send(Create<Packet>(DATAGRAM));
    Simulator::Schedule(MilliSeconds(2), &UdpSource::Fill, this);
}

UdpSink::UdpSink(Ptr<Node> node, uint16_t port)
{
    m_socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
    m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
    m_socket->SetRecvCallback(MakeCallback(&UdpSink::Receive, this));
}

void
UdpSink::Receive(Ptr<Socket> socket)
{
    Address from;
    while (Ptr<Packet> packet = socket->RecvFrom(from))
    {
        m_bytes += packet->GetSize();
        m_bytesOf[InetSocketAddress::ConvertFrom(from).GetIpv4()] += packet->GetSize();
    }
}
